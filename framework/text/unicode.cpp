#include "lacuna/framework/text/unicode.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lacuna::unicode {
namespace {

// The entry of an ascending table whose run `code` may lie in; null where all begin behind it.
template <class Entry>
const Entry* entry_up_to(const std::vector<Entry>& table, uint32_t Entry::*first, char32_t code) {
  const auto after = std::ranges::upper_bound(table, static_cast<uint32_t>(code), {}, first);
  return after == table.begin() ? nullptr : &*(after - 1);
}

bool contains(const std::vector<CodeRange>& table, char32_t code) {
  const CodeRange* range = entry_up_to(table, &CodeRange::first, code);
  return range != nullptr && code <= range->last;
}

constexpr bool is_between(char32_t code, char32_t first, char32_t last) {
  return first <= code && code <= last;
}

// Syllables of Hangul decompose by arithmetic. *Source:* the Unicode standard, section 3.12.
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28;

void append_syllable(std::string& text, char32_t code) {
  const char32_t index = code - kSyllables;
  append(text, kLeading + index / (kVowelCount * kTrailingCount));
  append(text, kVowels + index % (kVowelCount * kTrailingCount) / kTrailingCount);
  if (index % kTrailingCount != 0) append(text, kTrailing + index % kTrailingCount);
}

}  // namespace

char32_t next(std::string_view text, size_t& at) {
  const auto lead = static_cast<uint8_t>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t code = lead & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3Fu);
  return code;
}

void append(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) codes.push_back(next(text, at));
  return codes;
}

std::string place(std::string_view text, size_t at) {
  const auto lines = std::ranges::count(text.substr(0, at), '\n');
  return fmt::format("byte {} (line {})", at, lines + 1);
}

bool is_letter(char32_t code) {
  if (code < 0x80) return is_between(code | 0x20, 'a', 'z');
  return contains(letters(), code);
}

bool is_number(char32_t code) {
  if (code < 0x80) return is_between(code, '0', '9');
  return contains(numbers(), code);
}

bool is_punctuation(char32_t code) { return contains(punctuation(), code); }
bool is_accent(char32_t code) { return code >= 0x80 && contains(accents(), code); }
bool is_control(char32_t code) { return contains(controls(), code); }

bool is_space(char32_t code) {
  return is_between(code, 9, 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         is_between(code, 0x2000, 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool is_cjk(char32_t code) {
  return is_between(code, 0x4E00, 0x9FFF) || is_between(code, 0x3400, 0x4DBF) ||
         is_between(code, 0x20000, 0x2A6DF) || is_between(code, 0x2A700, 0x2CEAF) ||
         is_between(code, 0xF900, 0xFAFF) || is_between(code, 0x2F800, 0x2FA1F);
}

char32_t lower(char32_t code) {
  if (code < 0x80) return is_between(code, 'A', 'Z') ? code + 32 : code;
  if (code == 0x130) return 'i';  // its small letter in full is i with a dot above
  const CaseRun* run = entry_up_to(capitals(), &CaseRun::first, code);
  if (run == nullptr || code > run->last || (code - run->first) % run->step != 0) return code;
  return static_cast<char32_t>(static_cast<int64_t>(code) + run->difference);
}

void append_without_accents(std::string& text, char32_t code) {
  if (code < 0x80) return append(text, code);
  if (is_accent(code)) return;
  if (is_between(code, kSyllables, 0xD7A3)) return append_syllable(text, code);
  const CodeRange* base = entry_up_to(bases(), &CodeRange::first, code);
  if (base != nullptr && base->first == code) return append(text, base->last);
  const LongBase* several = entry_up_to(long_bases(), &LongBase::code, code);
  if (several == nullptr || several->code != code) return append(text, code);
  for (const uint32_t part : several->base) append(text, part);
}

}  // namespace lacuna::unicode
