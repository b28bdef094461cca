#include "lacuna/framework/train/spread_loss.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lacuna {

// With nothing left for the labels, they do not matter: the heaviest one gives a divisor.
SpreadLoss spread_loss(const Variable& output, const IndexTensor& labels,
                       const CrossEntropyOptions& options) {
  const std::vector<float>& weights = options.class_weights;
  const auto heaviest = std::ranges::max_element(weights);
  std::vector<int64_t> any(labels.values().begin(), labels.values().end());
  double count = 0.0;
  for (int64_t& label : any) {
    if (label == kIgnoredLabel) continue;
    label = heaviest - weights.begin();
    ++count;
  }
  return {.mean = cross_entropy(output, IndexTensor(labels.shape(), std::move(any)),
                                {.label_smoothing = 1.0, .class_weights = weights}),
          .weight = options.label_smoothing * count * double{*heaviest}};
}

}  // namespace lacuna
