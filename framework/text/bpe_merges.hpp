// The merges of byte pair encoding: which pairs of tokens become one, and in which order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lacuna/framework/text/vocabulary.hpp"

namespace lacuna {

/// The lines of merges.txt, and the number of the first of them.
struct MergeLines {
  std::vector<std::string> lines;
  int64_t first_line = 1;
};
/// Without a first line that begins with "#version", and without empty lines at the end.
MergeLines parse_merges(std::string_view text);

class BpeMerges {
 public:
  /// *Errors:* DataError "merges, line 7: …".
  BpeMerges(const std::vector<std::string>& lines, int64_t first_line,
            const Vocabulary& vocabulary);

  /// Merges what can be of the ids of a piece.
  std::vector<int64_t> apply(std::vector<int64_t> ids) const;

 private:
  struct Merge {
    int64_t rank = 0;
    int64_t merged = 0;
  };
  const Merge* find(int64_t left, int64_t right) const;

  std::unordered_map<uint64_t, Merge> merges_;  // by left << 32 | right
};

}  // namespace lacuna
