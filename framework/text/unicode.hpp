// What tokenizers need to know of Unicode: UTF-8 in and out, and the kinds of code points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::unicode {

/// The code point that begins at `at`, which is moved behind it. *Requires* UTF-8 (require_utf8).
char32_t next(std::string_view text, size_t& at);
/// The code point in UTF-8, appended. *Requires* one that exists.
void append(std::string& text, char32_t code);
/// The code points of a text. *Requires* UTF-8.
std::vector<char32_t> code_points(std::string_view text);
/// "byte 12 (line 3)", lines counted from 1: for messages.
std::string place(std::string_view text, size_t at);

// General categories L*, N*, P*, Mn, and Cc with Cf, of Unicode 14.
bool is_letter(char32_t code);
bool is_number(char32_t code);
bool is_punctuation(char32_t code);
bool is_accent(char32_t code);
bool is_control(char32_t code);
/// The property White_Space.
bool is_space(char32_t code);
/// The ideographs that BERT splits off: CJK unified ones with extensions A to E, compatibility
/// ones.
bool is_cjk(char32_t code);

/// The small letter of a capital in any script; others stay. One for one: İ becomes i, Σ always σ.
char32_t lower(char32_t code);
/// Appends what is left of the code point in canonical decomposition (NFD) without its accents
/// (Mn). CJK compatibility ideographs stay as they are.
void append_without_accents(std::string& text, char32_t code);

/// A run of code points; in `bases` a code point and what it decomposes to without accents.
struct CodeRange {
  uint32_t first = 0;
  uint32_t last = 0;
};
/// Every `step`-th code point of a run, and the difference to its small letter.
struct CaseRun {
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t step = 1;
  int32_t difference = 0;
};
struct LongBase {
  uint32_t code = 0;
  std::vector<uint32_t> base;
};

// The tables, in ascending order.
const std::vector<CodeRange>& letters();
const std::vector<CodeRange>& numbers();
const std::vector<CodeRange>& punctuation();
const std::vector<CodeRange>& accents();
const std::vector<CodeRange>& controls();
const std::vector<CaseRun>& capitals();
const std::vector<CodeRange>& bases();
const std::vector<LongBase>& long_bases();

}  // namespace lacuna::unicode
