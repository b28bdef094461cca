#include "lacuna/framework/data/sampling.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace lacuna {

bool has_example_labels(const Dataset& data) {
  if (data.num_classes() == 0 || data.token_label() != TokenLabel::None || data.size() == 0) {
    return false;
  }
  const int64_t first = 0;
  return data.labels_of({&first, 1}).size() == 1;
}

std::vector<int64_t> all_labels(const Dataset& data) {
  constexpr int64_t kAtOnce = 1024;
  std::vector<int64_t> labels, indices;
  labels.reserve(static_cast<size_t>(data.size()));
  for (int64_t first = 0; first < data.size(); first += kAtOnce) {
    indices.resize(static_cast<size_t>(std::min(kAtOnce, data.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const std::vector<int64_t> some = data.labels_of(indices);
    labels.insert(labels.end(), some.begin(), some.end());
  }
  return labels;
}

Sampling read_sampling(const Config& data, const Dataset& train) {
  const auto name = data.get<std::string>("sampling", "once");
  if (name == "once") return Sampling::Once;
  if (name != "balanced") data.get("sampling").fail("once or balanced");
  if (has_example_labels(train)) return Sampling::Balanced;
  data.get("sampling").error("balanced is for examples that have one class each; leave it out");
}

}  // namespace lacuna
