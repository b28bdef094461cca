// The page of `lacuna report`: runs as one HTML file that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// What stands above the results, in addition to the runs themselves.
struct PageOptions {
  std::string title = {};                ///< empty: the run's name, or how many there are
  std::vector<std::string> groups = {};  ///< a label for each run: a table of mean and spread
};

/// An HTML page, in UTF-8: tables, curves, layers, masks, configurations, and the same as JSON
/// (docs/guides/report.md). Its content security policy lets it fetch nothing. *Requires* a run.
std::string render_page(const std::vector<RunData>& runs, const PageOptions& options = {});

/// The file that a path leads to: links are followed, to where nothing is yet, too. *Errors:*
/// ConfigError when they lead to themselves.
std::string behind_links(const std::string& path);

/// *Errors:* ConfigError when no page can be written there: it is a folder, there is no folder for
/// it or none that may be written to, or it is among the own files of a run in `folders`.
void require_place_of_page(const std::string& path, const std::vector<std::string>& folders);

/// Writes the page, whole or not at all; where `path` is a link, into the file that it leads to,
/// and the link stays. *Errors:* as require_place_of_page; StateError.
void write_page(const std::string& path, const std::vector<RunData>& runs,
                const PageOptions& options = {});

}  // namespace lacuna
