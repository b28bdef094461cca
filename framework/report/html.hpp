// Text and bytes fit to stand in HTML.
#pragma once

#include <string>
#include <string_view>

namespace lacuna {

/// With `&`, `<`, `>` and quotes as entities: for text and for attributes in quotes.
std::string html_text(std::string_view text);

/// "data:image/png;base64,…".
std::string data_url_of_png(std::string_view png);

}  // namespace lacuna
