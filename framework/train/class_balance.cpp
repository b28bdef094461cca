#include "lacuna/framework/train/class_balance.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "lacuna/framework/data/sampling.h"

namespace lacuna {
namespace {

bool is_balanced(const Config& value) { return value.is_scalar() && value.text() == "balanced"; }

// Replaces `balanced`, so that the run's configuration states what was measured.
void write_weights(Config loss, const char* key, const std::vector<double>& weights) {
  Config list = Config::from_value(weights);
  list.set_position(loss.get(key).position());
  loss.set(key, list);
}

std::vector<double> measured_class_weights(const Config& key, const Dataset& data,
                                           std::optional<int64_t> ignored) {
  if (!has_example_labels(data)) {
    key.error("balanced is for examples that have one class each; give a list of weights");
  }
  std::vector<int64_t> counts(static_cast<size_t>(data.num_classes()));
  for (const int64_t label : all_labels(data)) {
    if (label >= 0 && label != ignored) ++counts[static_cast<size_t>(label)];
  }
  return balanced_class_weights(counts);
}

// Sums of the targets of each output. Labels of two classes are the targets of one.
std::vector<double> target_sums(const Dataset& data, int64_t outputs) {
  std::vector<double> sums(static_cast<size_t>(outputs));
  if (data.num_classes() > 0) {
    const std::vector<int64_t> labels = all_labels(data);
    sums[0] = static_cast<double>(std::ranges::count(labels, 1));
    return sums;
  }
  constexpr int64_t kAtOnce = 1024;
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < data.size(); first += kAtOnce) {
    indices.resize(static_cast<size_t>(std::min(kAtOnce, data.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Tensor targets = data.gather(indices).targets;
    for (int64_t i = 0; i < targets.numel(); ++i) {
      sums[static_cast<size_t>(i % outputs)] += double{targets.data()[i]};
    }
  }
  return sums;
}

std::vector<double> measured_pos_weights(const Config& key, const Dataset& data, int64_t outputs) {
  std::vector<double> weights = target_sums(data, outputs);
  const auto n = static_cast<double>(data.size());
  for (size_t j = 0; j < weights.size(); ++j) {
    const double positive = weights[j];
    if (positive == 0.0 || positive == n) {
      key.error(
          fmt::format("balanced needs targets of 0 and of 1 for each output, and output {} "
                      "has only {}; give a list of weights",
                      j, positive == 0.0 ? 0 : 1));
    }
    weights[j] = (n - positive) / positive;
  }
  return weights;
}

bool is_weight(double weight) { return weight >= 0.0 && weight <= 1e30; }

// Each must be a weight.
std::vector<float> checked(const Config& key, const std::vector<double>& weights) {
  std::vector<float> result;
  for (size_t j = 0; j < weights.size(); ++j) {
    if (!is_weight(weights[j])) {
      (key.is_list() ? key.items()[j] : key).fail("a finite number of at least 0");
    }
    result.push_back(static_cast<float>(weights[j]));
  }
  return result;
}

}  // namespace

std::vector<double> balanced_class_weights(std::span<const int64_t> counts) {
  const auto n = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto present = std::ranges::count_if(counts, [](int64_t count) { return count > 0; });
  std::vector<double> weights;
  for (const int64_t count : counts) {
    const double share = static_cast<double>(present) * static_cast<double>(count);
    weights.push_back(count > 0 ? n / share : 1.0);
  }
  return weights;
}

std::vector<float> read_class_weights(const Config& loss, const Dataset& data,
                                      std::optional<int64_t> ignored) {
  if (!loss.has("class_weights")) return {};
  if (is_balanced(loss.get("class_weights"))) {
    write_weights(loss, "class_weights",
                  measured_class_weights(loss.get("class_weights"), data, ignored));
  }
  const Config list = loss.at("class_weights");
  if (!list.is_list()) list.fail("balanced, or a list of one number for each class");
  const auto weights = list.as<std::vector<double>>();
  if (static_cast<int64_t>(weights.size()) != data.num_classes()) {
    list.fail(fmt::format("{} numbers, one for each class", data.num_classes()));
  }
  std::vector<float> result = checked(list, weights);
  if (*std::ranges::max_element(weights) == 0.0) list.fail("a weight above 0 for some class");
  return result;
}

std::vector<float> read_pos_weights(const Config& loss, const Dataset& data, int64_t outputs) {
  if (!loss.has("pos_weight")) return {};
  const Config given = loss.get("pos_weight");
  if (is_balanced(given)) {
    write_weights(loss, "pos_weight", measured_pos_weights(given, data, outputs));
  } else if (!given.is_list()) {
    if (!given.is_number()) given.fail("a number, a list of one for each output, or balanced");
    return std::vector<float>(static_cast<size_t>(outputs),
                              checked(given, {given.as<double>()}).front());
  }
  const Config list = loss.at("pos_weight");
  const auto weights = list.as<std::vector<double>>();
  if (static_cast<int64_t>(weights.size()) != outputs) {
    list.fail(fmt::format("{} numbers, one for each output", outputs));
  }
  return checked(list, weights);
}

}  // namespace lacuna
