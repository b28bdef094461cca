#include "lacuna/framework/data/changes/epoch_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lacuna/framework/data/changes/balanced_draws.hpp"
#include "lacuna/framework/data/changes/permutation.hpp"

namespace lacuna {

std::span<const int64_t> EpochOrder::batch(int64_t epoch, int64_t batch) {
  const int64_t begin = batch * options_.batch_size;
  const int64_t count = std::min(options_.batch_size, options_.size - begin);
  const bool is_small = options_.size <= kMostInMemory;
  const bool is_held =
      options_.shuffle && (is_small || !options_.lengths.empty() || !options_.labels.empty());
  if (is_held) {
    if (epoch_ != epoch) shuffle(epoch);
    return std::span(order_).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
  }
  batch_.resize(static_cast<size_t>(count));
  std::iota(batch_.begin(), batch_.end(), begin);
  if (options_.shuffle) {
    const ScatteredOrder order(options_.size, options_.seed, "loader",
                               static_cast<uint64_t>(epoch));
    for (int64_t& index : batch_) index = order.at(index);
  }
  return batch_;
}

void EpochOrder::shuffle(int64_t epoch) {
  epoch_ = -1;  // until it is whole
  order_ = seeded_permutation(options_.size, options_.seed, "loader", static_cast<uint64_t>(epoch));
  if (!options_.labels.empty()) {
    const std::vector<int64_t> draws = balanced_draws(options_.labels, options_.seed, epoch);
    for (int64_t& index : order_) index = draws[static_cast<size_t>(index)];
  }
  if (!options_.lengths.empty()) sort_by_length(epoch);
  epoch_ = epoch;
}

void EpochOrder::sort_by_length(int64_t epoch) {
  const int64_t batches = options_.size / options_.batch_size;
  const int64_t whole = batches * options_.batch_size;
  for (int64_t first = 0; first < batches; first += kBatchesInRun) {
    const int64_t last = std::min(first + kBatchesInRun, batches);
    std::stable_sort(order_.begin() + first * options_.batch_size,
                     order_.begin() + last * options_.batch_size, [&](int64_t a, int64_t b) {
                       return options_.lengths[static_cast<size_t>(a)] <
                              options_.lengths[static_cast<size_t>(b)];
                     });
  }
  std::vector<int64_t> mixed;
  mixed.reserve(order_.size());
  for (const int64_t batch :
       seeded_permutation(batches, options_.seed, "loader.batches", static_cast<uint64_t>(epoch))) {
    const auto begin = order_.begin() + batch * options_.batch_size;
    mixed.insert(mixed.end(), begin, begin + options_.batch_size);
  }
  mixed.insert(mixed.end(), order_.begin() + whole, order_.end());
  order_ = std::move(mixed);
}

}  // namespace lacuna
