#include "lacuna/framework/text/bpe_merges.hpp"

#include <fmt/core.h>

#include <optional>
#include <queue>
#include <tuple>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

uint64_t pair_of(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

// A token of a piece and its neighbours, −1 at the ends; an id of −1 has been merged into another.
struct Symbol {
  int64_t id = 0;
  int64_t before = -1;
  int64_t after = -1;
};

// A merge that was possible when it was found.
struct Candidate {
  int64_t rank = 0;
  int64_t at = 0;
  int64_t left = 0, right = 0, merged = 0;

  // The smallest comes first out of a queue.
  bool operator<(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

MergeLines parse_merges(std::string_view text) {
  MergeLines merges;
  int64_t line_number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (++line_number == 1 && line.starts_with("#version")) {
      merges.first_line = 2;
    } else {
      merges.lines.emplace_back(line);
    }
  }
  while (!merges.lines.empty() && merges.lines.back().empty()) merges.lines.pop_back();
  return merges;
}

BpeMerges::BpeMerges(const std::vector<std::string>& lines, int64_t first_line,
                     const Vocabulary& vocabulary) {
  merges_.reserve(lines.size());
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string_view line = lines[rank];
    const auto fail = [&](const std::string& what) {
      throw DataError(
          fmt::format("merges, line {}: {}", first_line + static_cast<int64_t>(rank), what));
    };
    const auto id_of = [&](std::string_view token) {
      const std::optional<int64_t> id = vocabulary.find(token);
      if (!id) {
        fail(fmt::format(
            "the vocabulary has no token '{}'; vocab.json and merges.txt must be of one tokenizer",
            printable(token)));
      }
      return *id;
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      fail(fmt::format("expected two tokens with a space between them, found '{}'",
                       printable(line)));
    }
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const uint64_t pair = pair_of(id_of(left), id_of(right));
    const Merge merge{.rank = static_cast<int64_t>(rank),
                      .merged = id_of(std::string(left) + std::string(right))};
    const auto [before, is_new] = merges_.emplace(pair, merge);
    if (!is_new) {
      fail(fmt::format("'{}' is already in line {}", printable(line),
                       first_line + before->second.rank));
    }
  }
}

const BpeMerges::Merge* BpeMerges::find(int64_t left, int64_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<int64_t> BpeMerges::apply(std::vector<int64_t> ids) const {
  if (ids.size() < 2) return ids;
  const auto size = static_cast<int64_t>(ids.size());
  std::vector<Symbol> symbols(ids.size());
  for (int64_t i = 0; i < size; ++i) {
    symbols[i] = {.id = ids[i], .before = i - 1, .after = i + 1 < size ? i + 1 : -1};
  }
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int64_t at) {
    if (at < 0 || symbols[at].after < 0) return;
    const int64_t left = symbols[at].id, right = symbols[symbols[at].after].id;
    if (const Merge* merge = find(left, right)) {
      candidates.push({merge->rank, at, left, right, merge->merged});
    }
  };
  for (int64_t i = 0; i < size; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    Symbol& left = symbols[next.at];
    if (left.id != next.left || left.after < 0 || symbols[left.after].id != next.right) continue;
    Symbol& right = symbols[left.after];
    left.id = next.merged;
    left.after = right.after;
    right.id = -1;
    if (left.after >= 0) symbols[left.after].before = next.at;
    consider(left.before);
    consider(next.at);
  }
  ids.clear();
  for (int64_t at = 0; at >= 0; at = symbols[at].after) ids.push_back(symbols[at].id);
  return ids;
}

}  // namespace lacuna
