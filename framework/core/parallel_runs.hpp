// Parallel loops whose units ask for what the next unit reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace internal {

/// Where runs of [0, count) begin, and `count`: long ones first, so that few are cut, then shorter
/// and shorter ones, so that threads end together.
inline std::vector<int64_t> run_begins(int64_t count, int64_t threads) {
  constexpr int64_t kRunsOfThread = 2;  // of what is left
  std::vector<int64_t> begins{0};
  while (begins.back() < count) {
    const int64_t left = count - begins.back();
    begins.push_back(
        begins.back() +
        (threads == 1 ? left : std::max<int64_t>(left / (kRunsOfThread * threads), 1)));
  }
  return begins;
}

}  // namespace internal

/// As parallel_blocks, but a thread takes runs of blocks that follow each other: a block that asks
/// ahead of time for what the next one reads mostly asks for itself.
template <class Body>
void parallel_runs(int64_t blocks, const Body& body) {
  const std::vector<int64_t> begins = internal::run_begins(blocks, num_threads());
  parallel_blocks(static_cast<int64_t>(begins.size()) - 1, [&](int64_t run) {
    const auto at = static_cast<size_t>(run);
    for (int64_t block = begins[at]; block < begins[at + 1]; ++block) body(block);
  });
}

}  // namespace lacuna
