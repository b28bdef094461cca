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

std::span<const int64_t> EpochOrder::places(int64_t epoch, int64_t batch) {
  const std::span<const int64_t> examples = this->batch(epoch, batch);
  if (places_.empty()) return examples;
  return std::span(places_).subspan(static_cast<size_t>(batch * options_.batch_size),
                                    examples.size());
}

void EpochOrder::shuffle(int64_t epoch) {
  epoch_ = -1;  // until it is whole
  order_ = seeded_permutation(options_.size, options_.seed, "loader", static_cast<uint64_t>(epoch));
  if (!options_.labels.empty()) {
    const std::vector<int64_t> draws = balanced_draws(options_.labels, options_.seed, epoch);
    for (int64_t& index : order_) index = draws[static_cast<size_t>(index)];
  }
  if (!options_.lengths.empty()) sort_by_length(epoch);
  if (!options_.labels.empty()) number_draws();
  epoch_ = epoch;
}

void EpochOrder::number_draws() {
  std::vector<int64_t> next(static_cast<size_t>(options_.size));
  std::iota(next.begin(), next.end(), int64_t{0});
  places_.clear();
  for (const int64_t index : order_) {
    int64_t& place = next[static_cast<size_t>(index)];
    places_.push_back(place);
    place += options_.size;
  }
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
