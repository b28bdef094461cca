#include "lacuna/framework/data/class_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/core/names.h"
#include "lacuna/framework/io/log.h"

namespace lacuna {

void require_plausible_labels(const Config& data, const Dataset& train) {
  constexpr int64_t kMany = 10000;
  const bool is_read_off = data.has("num_classes") && data.required<int64_t>("num_classes") == 0 &&
                           train.vocabulary_size() == 0;
  if (!is_read_off || train.num_classes() <= std::max(kMany, 10 * train.size())) return;
  data.error(fmt::format(
      "the training labels go up to {}, and there are {} examples: if they are numbers to be "
      "predicted, say task: regression; if they are classes, give num_classes",
      train.num_classes() - 1, train.size()));
}

void require_number_of_classes(const Config& data, const Dataset& train) {
  if (train.num_classes() == 0 || train.num_classes() == train.vocabulary_size()) return;
  const auto wanted = data.optional<int64_t>("num_classes");
  if (!wanted || *wanted == 0 || *wanted == train.num_classes()) return;
  data.get("num_classes")
      .error(fmt::format("is {}, and the data has {} classes; leave this key out", *wanted,
                         train.num_classes()));
}

void tell_lost_classes(const Config& data, const Dataset& train, std::span<const int64_t> staying) {
  const auto* arrays = dynamic_cast<const ArrayDataset*>(&train);
  if (!data.has("limit") || arrays == nullptr || arrays->num_classes() == 0) return;
  const std::vector<int64_t>& labels = arrays->examples().labels;
  const auto classes = static_cast<size_t>(arrays->num_classes());
  std::vector<bool> before(classes), after(classes);
  for (const int64_t label : labels) before[static_cast<size_t>(label)] = true;
  for (const int64_t i : staying) {
    after[static_cast<size_t>(labels[static_cast<size_t>(i)])] = true;
  }
  const std::vector<std::string> names = arrays->class_names();
  std::vector<std::string> lost;
  for (size_t label = 0; label < classes; ++label) {
    if (!before[label] || after[label]) continue;
    lost.push_back(names.empty() ? std::to_string(label) : names[label]);
  }
  if (lost.empty()) return;
  constexpr size_t kMost = 10;
  const size_t shown = std::min(lost.size(), kMost);
  log_warning(fmt::format(
      "{}: the first examples, which are trained on, are of other classes than {}{}; shuffle the "
      "files, or give a larger limit",
      data.get("limit").where(), join(std::span(lost).first(shown), ", "),
      shown < lost.size() ? fmt::format(" and {} more", lost.size() - shown) : ""));
}

}  // namespace lacuna
