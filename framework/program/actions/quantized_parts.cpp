#include "lacuna/framework/program/actions/quantized_parts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/run_model.hpp"

namespace lacuna {

CalibrationRun quantize_calibration(const Config& section, const QuantizeOptions& options,
                                    std::shared_ptr<const Dataset> data,
                                    const TrainOptions& train) {
  if (!options.needs_examples()) return {};
  const CalibrationData examples = calibration_data(std::move(data), train.seed, train.batch_size);
  const CalibrationOptions wanted =
      options.calibration_on(section, examples.examples, train.batch_size);
  return [examples, wanted](Module& model) { examples.run(model, wanted); };
}

void keep_model_state(StateDict& state) {
  StateDict kept;
  for (const char* part : {"model", "ema", "data", "origins", "quantized"}) {
    const StateDict of_part = state.below(part);
    if (!of_part.empty()) kept.merge(part, of_part);
  }
  state = std::move(kept);
}

void replace_model_state(StateDict& state, StateDict model) {
  StateDict kept;
  for (const auto& [name, value] : state.values()) {
    if (!name.starts_with("model/") && !name.starts_with("ema/")) kept.set(name, value);
  }
  kept.merge("model", std::move(model));
  state = std::move(kept);
}

std::vector<double> measure_rates(std::span<Module* const> models, const Dataset& data) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.3;   // for each model
  constexpr int kMostBatches = 200;  // of small models; more of them tell nothing new
  int64_t most = std::min<int64_t>(data.size(), 256);
  for (Module* model : models) {
    most = std::min(most, example_pieces(*model, data.example_shape(), most).examples);
  }
  std::vector<int64_t> first(static_cast<size_t>(most));
  std::iota(first.begin(), first.end(), 0);
  const Batch batch = data.gather(first);
  const NoGrad no_grad;
  // Before they are timed, models find memory and caches as they can.
  for (Module* model : models) run_model(*model, batch).value();
  std::vector<double> least(models.size(), std::numeric_limits<double>::infinity());
  double all = 0.0;
  for (int turn = 0; turn < kMostBatches && all < kSeconds * static_cast<double>(models.size());
       ++turn) {
    for (size_t m = 0; m < models.size(); ++m) {
      const auto begin = Clock::now();
      run_model(*models[m], batch).value();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      least[m] = std::min(least[m], seconds);
      all += seconds;
    }
  }
  std::vector<double> rates;
  for (const double seconds : least) rates.push_back(static_cast<double>(most) / seconds);
  return rates;
}

Config measured_precision(Module& model, const LossFunction& loss, const DataSplits& data,
                          const TrainOptions& train) {
  Config result =
      precision_result(evaluate_splits(model, loss, data, train.eval_batch_size), model);
  result.set("examples_per_second",
             measure_rates(std::array<Module*, 1>{&model}, *data.train).front());
  return result;
}

Config quantize_report(Module& model, const QuantizeOptions& options,
                       const QuantizedModel& quantized, const Config& products,
                       const Config& float32, const Config& int8) {
  Config messages = Config::list();
  for (const std::string& message : quantized.messages) messages.push_back(message);
  int64_t numel = 0, nnz = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    numel += parameter->numel();
    nnz += parameter->pattern()->nnz();
  }
  return Config::map({{"algorithm", to_string(options.algorithm)},
                      {"layers", quantized_rows(quantized.layers)},
                      {"products", products},
                      {"float32", float32},
                      {"int8", int8},
                      {"messages", messages},
                      {"numel", numel},
                      {"nnz", nnz}});
}

std::string quantize_report_text(const Config& report) {
  std::string text = quantized_table(report.at("layers"));
  for (const char* name : {"float32", "int8"}) text += precision_lines(name, report.at(name));
  return text;
}

}  // namespace lacuna
