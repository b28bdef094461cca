#include "lacuna/framework/train/evaluation.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/train/run_model.h"

namespace lacuna {
namespace {

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), was_training_(model.training()) {
    model_.eval();
  }
  ~EvaluationMode() {
    if (was_training_) model_.train();
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool was_training_;
  NoGrad no_grad_;
};

// What regression's answers are judged by. Targets are counted from the first one, so that their
// squares lose no digits far from zero.
class RegressionSums {
 public:
  void add(const Tensor& output, const Tensor& targets, const std::vector<double>& scale) {
    const std::vector<float> answers = output.to_vector(), wanted = targets.to_vector();
    const auto outputs = static_cast<size_t>(targets.shape().features());
    columns_.resize(outputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      Column& c = columns_[i % outputs];
      const double unit = scale.empty() ? 1.0 : scale[i % outputs];
      const double target = static_cast<double>(wanted[i]) * unit;
      const double off = static_cast<double>(answers[i]) * unit - target;
      if (c.count++ == 0) c.first = target;
      c.sum += target - c.first;
      c.squares += (target - c.first) * (target - c.first);
      c.errors += std::abs(off);
      c.squared_errors += off * off;
    }
  }

  void write_to(Evaluation& result) const {
    double r2 = 0.0, errors = 0.0, squared_errors = 0.0, count = 0.0;
    for (const Column& c : columns_) {
      const double distances = c.squares - c.sum * c.sum / static_cast<double>(c.count);
      r2 += distances > 0.0 ? 1.0 - c.squared_errors / distances
                            : std::numeric_limits<double>::quiet_NaN();
      errors += c.errors;
      squared_errors += c.squared_errors;
      count += static_cast<double>(c.count);
    }
    result.r2 = r2 / static_cast<double>(columns_.size());
    result.mae = errors / count;
    result.rmse = std::sqrt(squared_errors / count);
  }

 private:
  struct Column {
    int64_t count = 0;
    double first = 0.0, sum = 0.0, squares = 0.0, errors = 0.0, squared_errors = 0.0;
  };
  std::vector<Column> columns_;
};

}  // namespace

double bits_per_character(double loss, const Dataset& data) {
  const double characters = data.characters_per_label();
  if (!(characters > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  return loss / std::numbers::ln2 / characters;
}

Evaluation evaluate(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size, const BatchWatcher& watcher) {
  if (data.size() == 0) throw DataError("there are no examples to evaluate on");
  const EvaluationMode mode(model);
  Evaluation result;
  double loss_sum = 0.0, weight_sum = 0.0;
  int64_t correct = 0, in_largest = 0, answers = 0;
  RegressionSums regression;
  for_each_batch(data, batch_size, [&](const Batch& batch) {
    const Variable output = run_for_loss(model, batch);
    const auto mean = static_cast<double>(loss(output, batch).value().item());
    const double weight = loss.weight_of(batch);
    loss_sum += mean * weight;
    weight_sum += weight;
    if (loss.has_accuracy()) correct += loss.count_correct(output.value(), batch);
    if (loss.has_top5()) in_largest += count_in_largest(output.value(), batch.labels, 5);
    result.examples += batch.size;
    answers += loss.answers_of(batch);
    if (loss.is_regression()) {
      regression.add(output.value(), batch.targets, loss.target_scale());
    }
    if (watcher) watcher(output.value(), batch);
  });
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto examples = static_cast<double>(result.examples);
  result.loss = weight_sum > 0.0 ? loss_sum / weight_sum : 0.0;
  if (loss.has_accuracy()) {
    result.accuracy =
        answers > 0 ? static_cast<double>(correct) / static_cast<double>(answers) : 0.0;
  } else {
    result.accuracy = kNone;
  }
  if (loss.is_regression()) regression.write_to(result);
  if (loss.labels_tokens()) result.perplexity = std::exp(result.loss);
  result.bits_per_character = bits_per_character(result.loss, data);
  result.top5_accuracy = loss.has_top5() ? static_cast<double>(in_largest) / examples : kNone;
  return result;
}

std::vector<std::pair<std::string, double>> regression_results(const Evaluation& result) {
  std::vector<std::pair<std::string, double>> results;
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) results.emplace_back(name, value);
  };
  add("r2", result.r2);
  add("mae", result.mae);
  add("rmse", result.rmse);
  return results;
}

}  // namespace lacuna
