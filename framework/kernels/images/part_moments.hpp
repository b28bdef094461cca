// Moments of images by channel, computed part by part while the images are computed.
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

/// Each part has its own moments, joined in the order of the parts: results do not depend on which
/// thread computes which part.
class PartMoments {
 public:
  PartMoments(int64_t channels, int64_t parts);

  /// Adds part number `part`. Any thread may call it, once per part. *Requires* at least one pixel;
  /// `slabs` is the first float of the whole tensor. *Cost:* one read of the part.
  void take(int64_t part, const ImageSlabs& images, const SlabPart& at, const float* slabs);
  /// The moments of all parts, as by channel_statistics.
  ChannelStatistics joined() const;

 private:
  int64_t channels_, parts_;
  std::vector<Moments> moments_;  // [parts][channels]
};

}  // namespace lacuna
