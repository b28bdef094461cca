#include "lacuna/framework/train/loss_function.h"

#include <fmt/core.h>

#include <vector>

#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"

namespace lacuna {

LossFunction LossFunction::from_config(const Config& parent, const Dataset& data) {
  const Config config = parent.get("loss");
  const bool has_classes = data.num_classes() > 0;
  std::string name;
  if (config.is_null()) {
    name = parent.get<std::string>("loss", has_classes ? "cross_entropy" : "mse");
  } else {
    name = config.is_map() ? config.required<std::string>("type") : config.as<std::string>();
  }
  LossFunction loss;
  if (name == "cross_entropy") {
    if (!has_classes) {
      config.error("cross_entropy needs data with classes; this is regression: use mse");
    }
    if (config.is_map()) {
      loss.label_smoothing_ = config.get<double>("label_smoothing", 0.0);
      if (!(loss.label_smoothing_ >= 0.0 && loss.label_smoothing_ < 1.0)) {
        config.get("label_smoothing").fail("a number in [0, 1)");
      }
    }
  } else if (name == "mse") {
    if (has_classes) {
      config.error(
          fmt::format("mse needs regression targets; the data has {} classes: use cross_entropy",
                      data.num_classes()));
    }
    loss.kind_ = Kind::MeanSquaredError;
  } else {
    const std::vector<std::string> names = {"cross_entropy", "mse"};
    config.error("unknown loss '" + name + "'; " + suggest_name(name, names));
  }
  return loss;
}

Variable LossFunction::operator()(const Variable& output, const Batch& batch) const {
  if (kind_ == Kind::MeanSquaredError) return mse_loss(output, batch.targets);
  return cross_entropy(output, batch.labels, {.label_smoothing = label_smoothing_});
}

std::vector<int64_t> argmax_rows(const Tensor& logits) {
  const Tensor rows = reordered(logits, Order::RowMajor);
  const int64_t classes = rows.shape().features();
  std::vector<int64_t> best(static_cast<size_t>(rows.shape().batch()));
  for (size_t i = 0; i < best.size(); ++i) {
    const float* row = rows.data() + static_cast<int64_t>(i) * classes;
    int64_t largest = 0;
    for (int64_t j = 1; j < classes; ++j) {
      if (row[j] > row[largest]) largest = j;
    }
    best[i] = largest;
  }
  return best;
}

int64_t count_correct(const Tensor& logits, const IndexTensor& labels) {
  const Tensor rows = reordered(logits, Order::RowMajor);
  const int64_t classes = rows.shape().features();
  int64_t correct = 0;
  for (int64_t i = 0; i < rows.shape().batch(); ++i) {
    const float* row = rows.data() + i * classes;
    const int64_t label = labels.values()[static_cast<size_t>(i)];
    bool is_largest = true;  // comparisons with NaN are false
    for (int64_t j = 0; j < label; ++j) is_largest &= row[j] < row[label];
    for (int64_t j = label; j < classes; ++j) is_largest &= row[j] <= row[label];
    correct += is_largest ? 1 : 0;
  }
  return correct;
}

}  // namespace lacuna
