// Matching and suggesting dotted names: globs as in fnmatch, and the nearest name for an error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Whether `name` as a whole matches `pattern`: `*` any run of characters (dots included), `?` one
/// character, `[abc]`, `[a-z]`, `[!a]` one of a set. Case matters. Source: POSIX fnmatch(3),
/// without path rules and escapes.
bool glob_match(std::string_view pattern, std::string_view name);

/// `to`, where the n-th `*` stands for what the n-th `*` of `from` matched in `name`; nothing when
/// `from` does not match. Here only `*` is special; each matches as little as possible, from left
/// to right. *Requires* no more of them in `to` than in `from`.
std::optional<std::string> rename_by_glob(std::string_view from, std::string_view to,
                                          std::string_view name);

/// The text with the letters A to Z in lower case.
std::string to_lower(std::string_view text);

/// The candidate with the smallest edit distance to `name`; empty if none is near enough (the
/// distance is above half of the longer name's length).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// Whether one is the other with typing errors: its letters in another order, or one letter (if
/// both names have six or more, two) missing, added or changed. Case is ignored. Always false if a
/// name has one letter, or both have two.
bool is_misspelling(std::string_view a, std::string_view b);

/// "did you mean 'x'?" when a candidate is near, else "valid names: a, b, c". Complete for the keys
/// and names that a program has; of more than 60 names, as of a large model, "and 62 more" stands
/// for the others. Empty if none exist.
std::string suggest_name(std::string_view name, std::span<const std::string> candidates);

/// The strings joined by `separator`.
std::string join(std::span<const std::string> parts, std::string_view separator);

/// Like `join`, for lines that quote the contents of a file: each is shown as by `printable`, with
/// at most 2000 bytes, and at most eight are shown, followed by "and 62 more".
std::string join_foreign(std::span<const std::string> lines, std::string_view separator);

}  // namespace lacuna
