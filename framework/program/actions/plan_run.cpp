#include "lacuna/framework/program/actions/plan_run.h"

#include <fmt/printf.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/actions/widened_models.hpp"
#include "lacuna/framework/program/output/model_table.hpp"
#include "lacuna/framework/program/output/parametrization_table.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/output/time_table.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/train/loop/run_length.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"
#include "lacuna/framework/train/train_options.h"
#include "lacuna/framework/train/unknown_tokens.hpp"

namespace lacuna {
namespace {

double sparsity_of(int64_t nnz, const Shape& shape) {
  return shape.numel() == 0 ? 0.0
                            : 1.0 - static_cast<double>(nnz) / static_cast<double>(shape.numel());
}

// The sparse entries, and one for every parameter that stays dense, in the model's order.
std::vector<PlannedParameter> all_parameters(const Experiment& experiment) {
  const std::vector<PlannedParameter> sparse = experiment.plan();
  std::vector<PlannedParameter> all;
  for (const ParameterPtr& parameter : experiment.model->parameters()) {
    const size_t before = all.size();
    for (const PlannedParameter& entry : sparse) {
      if (entry.parameter == parameter->name()) all.push_back(entry);
    }
    if (all.size() > before) continue;
    const Pattern& pattern = *parameter->pattern();  // what was loaded may be sparse
    const std::string layout(pattern.layout().name());
    all.push_back({.parameter = parameter->name(),
                   .shape = parameter->shape(),
                   .algorithm = parameter->trainable ? "none" : "frozen",
                   .chosen_by = "",
                   .initial_nnz = pattern.nnz(),
                   .final_nnz = pattern.nnz(),
                   .update_steps = {},
                   .layout = layout,
                   .final_layout = layout,
                   .compressed = {}});
  }
  return all;
}

std::string describe_updates(const std::vector<int64_t>& steps) {
  constexpr size_t kListed = 6;
  if (steps.empty()) return "-";
  std::string text;
  if (steps.size() > kListed) {
    return fmt::format("{} updates, steps {} to {}", steps.size(), steps.front(), steps.back());
  }
  for (const int64_t step : steps) text += fmt::format("{}{}", text.empty() ? "step " : ", ", step);
  return text;
}

Config to_config(const PlannedParameter& p) {
  Config shape = Config::list(), updates = Config::list();
  for (const int64_t size : p.shape.sizes()) shape.push_back(size);
  for (const int64_t step : p.update_steps) updates.push_back(step);
  Config entry = Config::map({{"parameter", p.parameter},
                              {"shape", shape},
                              {"algorithm", p.algorithm},
                              {"chosen_by", p.chosen_by},
                              {"initial_nnz", p.initial_nnz},
                              {"final_nnz", p.final_nnz},
                              {"final_sparsity", sparsity_of(p.final_nnz, p.shape)},
                              {"layout", p.layout},
                              {"final_layout", p.final_layout},
                              {"update_steps", updates}});
  if (p.pattern.is_structured()) entry.set("pattern", p.pattern.to_string());
  return entry;
}

// The part of each split that the vocabulary lacks, if it has an [UNK].
std::vector<std::pair<std::string, double>> unknown_tokens(const Experiment& e) {
  std::vector<std::pair<std::string, double>> shares;
  const std::pair<const char*, const Dataset*> splits[] = {{"train", e.data.train.get()},
                                                           {"validation", e.data.validation.get()},
                                                           {"test", e.data.test.get()}};
  for (const auto& [name, split] : splits) {
    const double share =
        split == nullptr ? std::numeric_limits<double>::quiet_NaN() : share_of_unknown(*split);
    if (!std::isnan(share)) shares.emplace_back(name, share);
  }
  return shares;
}

std::string unknown_tokens_line(const std::vector<std::pair<std::string, double>>& shares) {
  std::vector<std::string> parts;
  for (const auto& [name, share] : shares) {
    parts.push_back(fmt::format("{} {:.2g} %", name, 100.0 * share));
  }
  return parts.empty() ? "" : "tokens that are [UNK]: " + join(parts, ", ") + "\n";
}

// Of the split with the most examples.
ExamplePieces evaluation_pieces(const Experiment& e) {
  int64_t examples = 1;
  for (const auto& split : {e.data.validation, e.data.test}) {
    if (split != nullptr) examples = std::max(examples, split->size());
  }
  return example_pieces(*e.model, e.data.train->example_shape(),
                        std::min(e.train.eval_batch_size, examples));
}

Config to_config(const ExamplePieces& pieces) {
  Config entry = Config::map({{"examples", pieces.examples}});
  if (pieces.rows > 0) entry.set("rows", pieces.rows);
  entry.set("bytes", static_cast<int64_t>(pieces.bytes));
  return entry;
}

// By the names of the weights that stay dense (why_dense).
using DenseReasons = std::map<std::string, std::string>;

DenseReasons dense_reasons(const Experiment& experiment) {
  DenseReasons reasons;
  for (const ParameterPtr& parameter : experiment.model->parameters()) {
    const std::string reason = why_dense(experiment, *parameter);
    if (!reason.empty() && parameter->trainable) reasons[parameter->name()] = reason;
  }
  return reasons;
}

std::string parameter_table(const std::vector<PlannedParameter>& plan,
                            const DenseReasons& reasons) {
  int width = 9, shape_width = 14;
  for (const PlannedParameter& p : plan) {
    width = std::max(width, static_cast<int>(p.parameter.size()));
    shape_width = std::max(shape_width, static_cast<int>(p.shape.to_string().size()));
  }
  std::string text = fmt::sprintf("%-*s  %-*s %-9s %11s %11s %8s  %-36s %s\n", width, "parameter",
                                  shape_width, "shape", "algorithm", "initial nnz", "final nnz",
                                  "sparsity", "updates", "chosen by");
  for (const PlannedParameter& p : plan) {
    const auto reason = reasons.find(p.parameter);
    const std::string why = reason == reasons.end() ? p.chosen_by : "dense: " + reason->second;
    text +=
        fmt::sprintf("%-*s  %-*s %-9s %11lld %11lld %8.4f  %-*s%s%s\n", width, p.parameter.c_str(),
                     shape_width, p.shape.to_string().c_str(), p.algorithm.c_str(),
                     static_cast<long long>(p.initial_nnz), static_cast<long long>(p.final_nnz),
                     sparsity_of(p.final_nnz, p.shape), why.empty() ? 0 : 36,
                     describe_updates(p.update_steps).c_str(), why.empty() ? "" : " ", why.c_str());
  }
  return text;
}

// All weights of the algorithms together: what a distribution distributes.
std::string total_line(const std::vector<PlannedParameter>& plan) {
  int64_t numel = 0, initial = 0, last = 0, count = 0;
  for (const PlannedParameter& p : plan) {
    if (p.chosen_by.empty()) continue;
    ++count;
    numel += p.shape.numel();
    initial += p.initial_nnz;
    last += p.final_nnz;
  }
  if (count < 2) return "";
  const auto density = [&](int64_t nnz) {
    return static_cast<double>(nnz) / static_cast<double>(std::max<int64_t>(numel, 1));
  };
  return fmt::sprintf(
      "the %lld sparse parameters together: density %.4f at first, %.4f at the end (%lld of "
      "%lld)\n",
      static_cast<long long>(count), density(initial), density(last), static_cast<long long>(last),
      static_cast<long long>(numel));
}

// *Requires* a parameter with a source, as all that algorithms plan for have.
LayoutChoice choice_of(const PlannedParameter& p, const CompressionLimits& limits,
                       const Layout& compressed) {
  if (p.source->convolution) {
    return compare_layouts(limits.convolution_of(*p.source), p.final_nnz);
  }
  return compare_layouts(p.shape, p.final_nnz, limits.rows_of(*p.source), compressed, p.lifetime);
}

// How each sparse parameter will finally be stored, and why.
std::string layout_lines(const Experiment& experiment, const std::vector<PlannedParameter>& plan) {
  std::string text;
  for (const PlannedParameter& p : plan) {
    if (p.chosen_by.empty()) continue;
    text += fmt::sprintf("%s is stored as %s", p.parameter.c_str(), p.layout.c_str());
    if (p.final_layout != p.layout)
      text += fmt::sprintf(", at the end as %s", p.final_layout.c_str());
    if (p.pattern.is_structured())
      text += fmt::sprintf(", pattern %s", p.pattern.description().c_str());
    const CompressionLimits& limits = experiment.sparsity->compression();
    const Layout* own = find_layout(p.compressed);
    const Layout& compressed = own == nullptr ? csr_layout() : *own;
    const auto limit =
        limits.compress_below.find({p.parameter, std::string(compressed.name()), p.lifetime});
    if (limit != limits.compress_below.end() && p.source != nullptr) {
      const LayoutChoice choice = choice_of(p, limits, compressed);
      text += fmt::sprintf("; %s is faster up to a density of %.2g; at the end %s",
                           std::string(compressed.name()).c_str(), limit->second,
                           choice.reason.c_str());
    }
    text += "\n";
  }
  return text;
}

// By the section `quantize`, if there is one: with the masks that the run begins with.
Config quantized_products(const Experiment& experiment) {
  const Config section = experiment.config.get("quantize");
  if (section.is_null()) return {};
  return planned_products(*experiment.model, QuantizeOptions::from_config(section));
}

// The time of the run, and of a step of dense training; empty if there is no time to measure it.
struct PlannedTime {
  PlannedTime(Experiment& experiment, const ModelTable::Counts& counts, double seconds)
      : less_arithmetic(counts.training > 0.0 ? counts.dense.training / counts.training : 0.0) {
    if (seconds <= 0.0) return;
    run = measure_run(experiment, seconds);
    if (run) dense = dense_step(experiment, run->step, seconds);
  }

  std::optional<RunTime> run = {};
  std::optional<DenseStep> dense = {};
  double less_arithmetic;
};

// What is foreseen of an experiment, put together once for both forms.
struct Foreseen {
  explicit Foreseen(const Experiment& e)
      : parameters(all_parameters(e)),
        reasons(dense_reasons(e)),
        model(e, parameters),
        evaluation(evaluation_pieces(e)),
        unknown(unknown_tokens(e)),
        products(quantized_products(e)),
        parametrization(e) {}

  std::vector<PlannedParameter> parameters;
  DenseReasons reasons;
  ModelTable model;
  ExamplePieces evaluation;
  std::vector<std::pair<std::string, double>> unknown;
  Config products;  // null without `quantize`
  ParametrizationTable parametrization;
};

Config report_of(const Experiment& e, const Foreseen& foreseen, const PlannedTime& time,
                 const std::vector<WidenedModel>& widened) {
  Config entries = Config::list();
  for (const PlannedParameter& parameter : foreseen.parameters) {
    Config entry = to_config(parameter);
    const auto reason = foreseen.reasons.find(parameter.parameter);
    if (reason != foreseen.reasons.end()) entry.set("dense_because", reason->second);
    entries.push_back(entry);
  }
  Config report = Config::map({{"steps", e.total_steps()},
                               {"steps_per_epoch", e.steps_per_epoch()},
                               {"numel", e.numel()},
                               {"final_nnz", foreseen.model.total().final_nnz}});
  ModelTable::write_flops(foreseen.model.total(), report);
  report.set("evaluation", to_config(foreseen.evaluation));
  if (time.run) report.set("time", to_config(*time.run, time.dense, time.less_arithmetic));
  report.set("layers", foreseen.model.to_config());
  report.set("parameters", entries);
  if (!foreseen.products.is_null()) report.set("quantized_products", foreseen.products);
  if (!foreseen.parametrization.empty()) {
    report.set("parametrization", foreseen.parametrization.to_config());
  }
  if (!widened.empty()) report.set("widen", to_config(widened));
  if (!foreseen.unknown.empty()) {
    Config shares = Config::map();
    for (const auto& [name, share] : foreseen.unknown) shares.set(name, share);
    report.set("unknown_tokens", shares);
  }
  return report;
}

std::string text_of(const Experiment& e, const Foreseen& foreseen, const PlannedTime& time,
                    const std::string& length_note, bool is_timed) {
  std::string text =
      fmt::format("{}, {} in an epoch; {}, {} at the end\n\n", plural(e.total_steps(), "step"),
                  e.steps_per_epoch(), plural(e.numel(), "parameter"),
                  plural(foreseen.model.total().final_nnz, "nonzero")) +
      foreseen.model.text() + "\n" + parameter_table(foreseen.parameters, foreseen.reasons) +
      total_line(foreseen.parameters);
  if (!e.chosen.empty()) text += "chosen: " + e.chosen + "\n";
  text += layout_lines(e, foreseen.parameters);
  if (!foreseen.products.is_null()) text += planned_lines(foreseen.products);
  text += foreseen.parametrization.text() + unknown_tokens_line(foreseen.unknown);
  const ExamplePieces& pieces = foreseen.evaluation;
  text += fmt::format(
      "evaluation runs {} example{} at a time, whose activations take about {:.1f} MB\n",
      pieces.examples, pieces.examples == 1 ? "" : "s", pieces.bytes / 1e6);
  if (!length_note.empty()) text += length_note + "\n";
  if (!is_timed) return text;
  if (!time.run) {
    return text + "the time of a step was not measured, because it may not fit into memory\n";
  }
  for (const std::string& line : time_lines(*time.run, time.dense, time.less_arithmetic)) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

RunPlan plan_run(const GivenConfig& given, const PlanOptions& options) {
  Config config = read_given(given, options.report_line);
  apply_overrides(config, given.overrides);
  write_new_run_keys(config.peek("data"));
  apply_process_options(config);
  const Config written = config.clone();
  MeasuredLength length;
  if (has_seconds(config)) length = build_for_seconds(config, nullptr);
  const auto experiment =
      length.experiment ? std::move(length.experiment) : build_experiment(config);
  warn_about_rates_of_zero(experiment->config.at("optimizer"), 0, experiment->total_steps());
  const Foreseen foreseen(*experiment);
  // These train steps.
  const PlannedTime time(*experiment, foreseen.model.total(), options.seconds);
  const std::vector<WidenedModel> widened = compare_widened(written, *experiment);
  return {.report = report_of(*experiment, foreseen, time, widened),
          .text = text_of(*experiment, foreseen, time, length.note, options.seconds > 0.0) +
                  widened_table(widened),
          .config = experiment->config};
}

}  // namespace lacuna
