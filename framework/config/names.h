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
/// `from` does not match. Here `*` alone is special; each matches as little as it can, from the
/// left on. *Requires* no more of them in `to` than in `from`.
std::optional<std::string> rename_by_glob(std::string_view from, std::string_view to,
                                          std::string_view name);

/// The text with the letters A to Z in lower case.
std::string to_lower(std::string_view text);

/// The candidate with the smallest edit distance to `name`; empty when none is near enough to be
/// what was meant (distance above half of the longer name's length).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// Whether one is the other with a slip or two: letters swapped, or one (of longer names two)
/// missing, added or changed. Case does not matter, and of names of one or two letters none is.
bool is_misspelling(std::string_view a, std::string_view b);

/// "did you mean 'x'?" when a candidate is near, else "valid are: a, b, c". Empty if none exist.
std::string suggest_name(std::string_view name, std::span<const std::string> candidates);

/// The strings joined by `separator`.
std::string join(std::span<const std::string> parts, std::string_view separator);

/// As `join`, of lines that name what is in a file, which may be anything and as many as it likes:
/// each as `printable` shows 2000 bytes of it, and of more than eight those, with "and 62 more"
/// behind.
std::string join_foreign(std::span<const std::string> lines, std::string_view separator);

}  // namespace lacuna
