// EpochOrder: which examples make up which batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// What the order of an epoch is a pure function of, in addition to the epoch.
struct OrderOptions {
  int64_t size = 0;        ///< examples
  int64_t batch_size = 1;  ///< ≥ 1
  bool shuffle = true;
  uint64_t seed = 0;
  /// Tokens of each example, or none. *Lifetime:* outlives the order.
  std::span<const int32_t> lengths = {};
  /// Where classes are to come equally often, the label of each example; else none. *Lifetime:*
  /// outlives the order.
  std::span<const int64_t> labels = {};
};

/// Shuffled examples, each once an epoch. Where they have lengths, batches are of similar ones:
/// what was shuffled is cut into runs of 50 batches, each run sorted by length (equal ones stay in
/// order), and then the batches are shuffled. Examples beyond the last whole batch are its last,
/// smaller batch, as they were shuffled; so dropping that favours no length.
///
/// With labels, an epoch has the draws of balanced_draws instead of the examples.
///
/// Beyond kMostInMemory examples without lengths and labels no order is held in memory: it is then
/// a pseudorandom one, a ScatteredOrder.
class EpochOrder {
 public:
  static constexpr int64_t kBatchesInRun = 50;
  static constexpr int64_t kMostInMemory = int64_t{1} << 24;  ///< 128 MiB

  explicit EpochOrder(OrderOptions options) : options_(options) {}

  /// The examples of a batch, until the next call. *Cost:* the first call for an epoch shuffles it,
  /// O(size), and O(size · log(50 · batch_size)) with lengths.
  std::span<const int64_t> batch(int64_t epoch, int64_t batch);
  /// A number for each draw of a batch that no other draw of its epoch has: the example's own, plus
  /// the size for each time that the epoch has drawn it before. Until the next call.
  std::span<const int64_t> places(int64_t epoch, int64_t batch);

 private:
  void shuffle(int64_t epoch);
  void sort_by_length(int64_t epoch);
  void number_draws();

  OrderOptions options_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;   // of the epoch, where it is held
  std::vector<int64_t> places_;  // with labels, the draws' numbers
  std::vector<int64_t> batch_;
};

}  // namespace lacuna
