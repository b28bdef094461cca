#include "lacuna/framework/text/text_length.hpp"

#include <algorithm>

namespace lacuna {

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0U) != 0x80U;  // all but those that go on with one
  });
}

std::vector<double> characters_before(const Tokenizer& tokenizer, std::string_view text,
                                      std::span<const int64_t> places) {
  std::vector<double> characters;
  int64_t tokens = 0, before = 0;  // of the lines so far
  while (!text.empty() && characters.size() < places.size()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const auto in_line = static_cast<int64_t>(tokenizer.encode(line).size());
    const int64_t length = count_characters(line);
    while (characters.size() < places.size() && places[characters.size()] < tokens + in_line) {
      const auto share =
          static_cast<double>(places[characters.size()] - tokens) / static_cast<double>(in_line);
      characters.push_back(static_cast<double>(before) + share * static_cast<double>(length));
    }
    tokens += in_line;
    before += length;
  }
  characters.resize(places.size(), static_cast<double>(before));
  return characters;
}

}  // namespace lacuna
