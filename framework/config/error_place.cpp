#include "lacuna/framework/config/error_place.h"

#include <algorithm>
#include <charconv>

namespace lacuna {
namespace {

constexpr std::string_view kColon = ": ";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number that `text` ends with, and the colon before it, taken off; 0 where there is none.
int take_number(std::string_view& text) {
  size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  if (begin == 0 || begin == text.size() || text[begin - 1] != ':') return 0;
  int number = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  text.remove_suffix(text.size() - begin + 1);
  return number;
}

bool is_dotted_name(std::string_view text) {
  const bool begins = !text.empty() && (is_letter(text.front()) || is_digit(text.front()));
  return begins && std::ranges::any_of(text, is_letter) && std::ranges::all_of(text, [](char c) {
           return is_letter(c) || is_digit(c) || c == '.' || c == '-';
         });
}

}  // namespace

ErrorPlace ErrorPlace::of(std::string_view message) {
  ErrorPlace place;
  // The file's name may have colons, so the position is the first ":line:column: ".
  for (size_t end = message.find(kColon); end != std::string_view::npos;
       end = message.find(kColon, end + 1)) {
    std::string_view head = message.substr(0, end);
    const int column = take_number(head);
    const int line = column > 0 ? take_number(head) : 0;
    if (line == 0 || head.empty() || head.find('\n') != std::string_view::npos) continue;
    place.file = head;
    place.line = line;
    place.column = column;
    message.remove_prefix(end + kColon.size());
    break;
  }
  const std::string_view key = message.substr(0, message.find(kColon));
  if (key.size() < message.size() && is_dotted_name(key)) place.key = key;
  return place;
}

}  // namespace lacuna
