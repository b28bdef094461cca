#include "lacuna/framework/train/label_lists.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/autograd/classes/tiled_logits.hpp"
#include "lacuna/framework/config/sparse_examples.h"

namespace lacuna {

// Labels stand before the padding.
int64_t count_labelled(const Batch& batch) {
  const IndexTensor& lists = batch.named.at(kLabelLists);
  const auto most = static_cast<size_t>(lists.shape()[1]);
  int64_t count = 0;
  for (size_t i = 0; i < lists.values().size(); i += most) {
    count += lists.values()[i] != kIgnoredLabel ? 1 : 0;
  }
  return count;
}

TopClasses top_classes(const Variable& output, int64_t count) {
  LargestLogits largest = largest_logits(output, count);
  return {
      .count = count, .classes = std::move(largest.classes), .outputs = std::move(largest.logits)};
}

std::array<double, kPrecisions.size()> count_hits(const TopClasses& top, const Batch& batch) {
  const IndexTensor& lists = batch.named.at(kLabelLists);
  const auto most = static_cast<size_t>(lists.shape()[1]), count = static_cast<size_t>(top.count);
  std::array<double, kPrecisions.size()> hits = {};
  for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i) {
    const auto labels = lists.values().subspan(i * most, most);
    for (size_t place = 0; place < count; ++place) {
      const int64_t found = top.classes[i * count + place];
      if (found < 0 || std::ranges::find(labels, found) == labels.end()) continue;
      for (size_t k = 0; k < hits.size(); ++k) {
        hits[k] += static_cast<int64_t>(place) < kPrecisions[k].count ? 1.0 : 0.0;
      }
    }
  }
  return hits;
}

}  // namespace lacuna
