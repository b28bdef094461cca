#include "lacuna/framework/text/bpe_pieces.hpp"

#include <array>

#include "lacuna/framework/text/unicode.hpp"

namespace lacuna {
namespace {

enum class Kind { Letter, Number, Space, Other };

Kind kind_of(char32_t code) {
  if (unicode::is_letter(code)) return Kind::Letter;
  if (unicode::is_number(code)) return Kind::Number;
  return unicode::is_space(code) ? Kind::Space : Kind::Other;
}

// Bytes of the contraction that begins at `at`; 0 where none does.
size_t contraction_at(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t",  "'re", "'ve",
                                                             "'m", "'ll", "'d"};
  for (const std::string_view contraction : kContractions) {
    if (text.substr(at).starts_with(contraction)) return contraction.size();
  }
  return 0;
}

// A run of code points of one kind.
struct Run {
  Kind kind = Kind::Other;
  size_t end = 0;
  size_t last = 0;  // where its last code point begins
};

// *Requires* that the text goes on at `at`.
Run run_at(std::string_view text, size_t at) {
  Run run{.end = at, .last = at};
  run.kind = kind_of(unicode::next(text, run.end));
  while (run.end < text.size()) {
    size_t after = run.end;
    if (kind_of(unicode::next(text, after)) != run.kind) break;
    run.last = run.end;
    run.end = after;
  }
  return run;
}

size_t piece_end(std::string_view text, size_t at) {
  if (const size_t length = contraction_at(text, at); length > 0) return at + length;
  const size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const Run word = run_at(text, begin);
  if (word.kind != Kind::Space) return word.end;
  // White space before a word leaves its last character to it, if that is not all there is.
  const Run space = run_at(text, at);
  return space.end == text.size() || space.last == at ? space.end : space.last;
}

}  // namespace

std::vector<std::string_view> bpe_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = piece_end(text, at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

}  // namespace lacuna
