#include "lacuna/framework/program/actions/widened_models.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/program/output/time_table.hpp"
#include "lacuna/framework/train/loop/run_timing.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"

namespace lacuna {
namespace {

constexpr double kMeasuredSeconds = 1.0;

// Numbers of the model that differ from those that were written.
void find_widths(const Config& written, const Config& built, std::vector<std::string>& widths) {
  for (const auto& [key, value] : written.children()) {
    const Config other = built.peek(key);
    if (value.is_number() && other.is_number() && !(value == other)) {
      widths.push_back(fmt::format("{} {}", other.path(), other.text()));
    } else {
      find_widths(value, other, widths);
    }
  }
}

WidenedModel measured(const std::string& name, const Config& config, const Config& written,
                      const Experiment& on) {
  const auto experiment = build_experiment_on(on.data, config);
  std::map<std::string, int64_t> nonzeros;
  for (const PlannedParameter& planned : experiment->plan()) {
    nonzeros[planned.parameter] = planned.final_nnz;
  }
  const auto count = [&](const Parameter& parameter) {
    const auto found = nonzeros.find(parameter.name());
    return found == nonzeros.end() ? parameter.numel() : found->second;
  };
  WidenedModel model{.name = name, .widths = {}, .step_seconds = {}};
  for (const ParameterPtr& parameter : experiment->model->parameters()) {
    model.nonzeros += count(*parameter);
  }
  model.flops = count_flops(experiment->rows, [&](const Parameter& parameter) {
                  return static_cast<double>(count(parameter));
                }).forward;
  std::vector<std::string> widths;
  find_widths(written.at("model"), experiment->config.at("model"), widths);
  model.widths = widths.empty() ? "as written" : join(widths, ", ");
  model.step_seconds = measure_step(*experiment, kMeasuredSeconds);
  return model;
}

}  // namespace

std::vector<WidenedModel> compare_widened(const Config& written, const Experiment& experiment) {
  const Config model = written.peek("model");
  const Config widen = model.is_map() ? model.peek("widen") : Config();
  if (widen.is_null()) return {};
  std::vector<WidenedModel> models;
  for (const std::string name : {"dense", "flops", "parameters"}) {
    Config config = written.clone();
    config.set("train", experiment.config.at("train").clone());  // seconds have become steps
    Config section = config.at("model");
    section.erase("widen");
    if (name == "dense") {
      config.erase("sparsity");
      config.erase("csr_up_to");
    } else if (widen.is_map()) {
      section.set("widen", widen.clone());
      section.at("widen").set("match", name);
    } else {
      section.set("widen", name);
    }
    models.push_back(measured(name, config, written, experiment));
  }
  return models;
}

std::string widened_table(const std::vector<WidenedModel>& models) {
  if (models.empty()) return "";
  std::string text = fmt::format("\n{:<12} {:>14} {:>16} {:>12}  {}\n", "equal", "nonzeros",
                                 "inference FLOPs", "step", "widths");
  for (const WidenedModel& model : models) {
    text +=
        fmt::format("{:<12} {:>14} {:>16.0f} {:>12}  {}\n", model.name, model.nonzeros, model.flops,
                    model.step_seconds ? time_in_words(*model.step_seconds) : "?", model.widths);
  }
  return text;
}

Config to_config(const std::vector<WidenedModel>& models) {
  Config list = Config::list();
  for (const WidenedModel& model : models) {
    Config entry = Config::map({{"equal", model.name},
                                {"widths", model.widths},
                                {"nonzeros", model.nonzeros},
                                {"inference_flops", static_cast<int64_t>(model.flops)}});
    if (model.step_seconds) entry.set("step_seconds", *model.step_seconds);
    list.push_back(entry);
  }
  return list;
}

}  // namespace lacuna
