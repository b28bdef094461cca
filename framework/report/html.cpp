#include "lacuna/framework/report/html.hpp"

#include <algorithm>
#include <cstdint>

namespace lacuna {

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string data_url_of_png(std::string_view png) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string url = "data:image/png;base64,";
  for (size_t i = 0; i < png.size(); i += 3) {
    const size_t count = std::min<size_t>(3, png.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<uint8_t>(png[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      url += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return url;
}

}  // namespace lacuna
