// The softmax over very many classes, of which only a tile has logits at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lacuna {

/// Logits of some consecutive classes, in batch slabs [⌈examples/64⌉][classes][64].
struct ClassTileShape {
  int64_t examples = 0;
  int64_t classes = 0;
};

/// Σ e^(x − largest) over an example's logits seen so far.
struct ExponentialSum {
  float largest = -std::numeric_limits<float>::infinity();
  double sum = 0.0;
};

/// Adds a tile's logits to the sums, one for each example. Sums of up to 1024 classes are floats,
/// and these are joined in double, in the order of the classes. A NaN makes the sum NaN. *Cost:*
/// two passes over the tile, the second from the cache.
void add_exponentials(const ClassTileShape& shape, const float* logits,
                      std::span<ExponentialSum> sums);

/// x becomes factor · e^(x − largest), in place: with factor = c / sum, c times the softmax.
/// Padding becomes 0. *Shapes:* largest and factor [examples].
void scaled_exponentials(const ClassTileShape& shape, std::span<const float> largest,
                         std::span<const float> factor, float* logits);

/// The classes with the largest logits seen so far, `count` for each example, in descending order;
/// of equals the first class comes first. Missing ones are class −1. NaN is never among them.
struct LargestLogits {
  LargestLogits(int64_t examples, int64_t count);

  int64_t count;
  std::vector<float> logits;     ///< [examples, count]
  std::vector<int64_t> classes;  ///< [examples, count]
};

/// Takes the logits of a tile whose first class is given. *Requires* tiles in ascending order.
void take_largest(const ClassTileShape& shape, const float* logits, int64_t first_class,
                  LargestLogits& largest);

}  // namespace lacuna
