// Moments of images by channel, taken part by part as the images are made.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna {

/// Pixels of one slab of images.
struct SlabPart {
  struct Range {
    int64_t begin = 0, end = 0;
  };
  int64_t slab = 0;
  Range rows, columns;
};

/// Each part has its own, which are joined in the order of the parts: numbers do not depend on who
/// takes which part.
class PartMoments {
 public:
  PartMoments(int64_t channels, int64_t parts);

  /// Takes part number `part`. Any thread may, each part once. *Requires* at least one pixel;
  /// `slabs` is the whole tensor's first float. *Cost:* one read of the part.
  void take(int64_t part, const ImageSlabs& images, const SlabPart& at, const float* slabs);
  /// Of all parts, as channel_statistics has them.
  ChannelStatistics joined() const;

 private:
  int64_t channels_, parts_;
  std::vector<Moments> moments_;  // [parts][channels]
};

}  // namespace lacuna
