// Files that stand in the program, made part of it by cmake/embed_files.cmake.
#pragma once

#include <string>

namespace lacuna {

/// framework/report/page.css and page.js, and uPlot's script, style and licence from third_party.
std::string page_css();
std::string page_js();
std::string uplot_js();
std::string uplot_css();
std::string uplot_license();

}  // namespace lacuna
