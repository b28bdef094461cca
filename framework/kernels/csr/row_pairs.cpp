#include "lacuna/framework/kernels/csr/row_pairs.hpp"

#include <algorithm>
#include <bit>

namespace lacuna {
namespace {

constexpr size_t kCandidates = 64;

// Without this instruction, each word costs a call: pairs are used only on processors that have it.
#if defined(__x86_64__) && defined(__GNUC__)
#define LACUNA_COUNTS_BITS __attribute__((target("popcnt")))
#else
#define LACUNA_COUNTS_BITS
#endif

}  // namespace

void RowPairing::begin(int64_t rows, int64_t columns) {
  words_ = (columns + 63) / 64;
  bits_.assign(static_cast<size_t>(rows * words_), 0);
  single_.resize(static_cast<size_t>(rows));
  for (size_t i = 0; i < single_.size(); ++i) single_[i] = static_cast<uint32_t>(i);
  pairs_.clear();
}

LACUNA_COUNTS_BITS size_t RowPairing::most_alike(uint32_t row, size_t begin, int32_t& most) const {
  const uint64_t* bits = bits_.data() + row * words_;
  size_t best = begin;
  most = -1;
  for (size_t i = begin; i < single_.size(); ++i) {
    const uint64_t* other = bits_.data() + single_[i] * words_;
    int32_t common = 0;
    for (int64_t w = 0; w < words_; ++w) common += std::popcount(bits[w] & other[w]);
    if (common > most) {
      most = common;
      best = i;
    }
  }
  return best;
}

void RowPairing::run() {
  while (single_.size() > 1) {
    const uint32_t row = single_.back();
    single_.pop_back();
    int32_t most = 0;
    const size_t partner =
        most_alike(row, single_.size() - std::min(single_.size(), kCandidates), most);
    pairs_.push_back({row, single_[partner], most / kUnit * kUnit});
    single_[partner] = single_.back();
    single_.pop_back();
  }
  std::ranges::stable_sort(pairs_, {}, &Pair::shared);
}

}  // namespace lacuna
