// `lacuna plan`: what the sparsity algorithm will do, counted before any training.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/model_table.hpp"
#include "lacuna/framework/program/output/time_table.hpp"
#include "lacuna/framework/program/process_options.hpp"
#include "lacuna/framework/program/quantizing/quantize_report.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/train/loop/run_length.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"
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

// What of each split the vocabulary lacks, where it has an [UNK].
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

void print_unknown_tokens(const std::vector<std::pair<std::string, double>>& shares) {
  std::vector<std::string> parts;
  for (const auto& [name, share] : shares) {
    parts.push_back(fmt::format("{} {:.2g} %", name, 100.0 * share));
  }
  if (!parts.empty()) std::printf("tokens that are [UNK]: %s\n", join(parts, ", ").c_str());
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

void print_table(const std::vector<PlannedParameter>& plan, const DenseReasons& reasons) {
  int width = 9, shape_width = 14;
  for (const PlannedParameter& p : plan) {
    width = std::max(width, static_cast<int>(p.parameter.size()));
    shape_width = std::max(shape_width, static_cast<int>(p.shape.to_string().size()));
  }
  std::printf("%-*s  %-*s %-9s %11s %11s %8s  %-36s %s\n", width, "parameter", shape_width, "shape",
              "algorithm", "initial nnz", "final nnz", "sparsity", "updates", "chosen by");
  for (const PlannedParameter& p : plan) {
    const auto reason = reasons.find(p.parameter);
    const std::string why = reason == reasons.end() ? p.chosen_by : "dense: " + reason->second;
    std::printf("%-*s  %-*s %-9s %11lld %11lld %8.4f  %-*s%s%s\n", width, p.parameter.c_str(),
                shape_width, p.shape.to_string().c_str(), p.algorithm.c_str(),
                static_cast<long long>(p.initial_nnz), static_cast<long long>(p.final_nnz),
                sparsity_of(p.final_nnz, p.shape), why.empty() ? 0 : 36,
                describe_updates(p.update_steps).c_str(), why.empty() ? "" : " ", why.c_str());
  }
}

// All that algorithms are in charge of together: what a distribution shares out.
void print_total(const std::vector<PlannedParameter>& plan) {
  int64_t numel = 0, initial = 0, last = 0, count = 0;
  for (const PlannedParameter& p : plan) {
    if (p.chosen_by.empty()) continue;
    ++count;
    numel += p.shape.numel();
    initial += p.initial_nnz;
    last += p.final_nnz;
  }
  if (count < 2) return;
  const auto density = [&](int64_t nnz) {
    return static_cast<double>(nnz) / static_cast<double>(std::max<int64_t>(numel, 1));
  };
  std::printf(
      "the %lld sparse parameters together: density %.4f at first, %.4f in the end (%lld of "
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

// How each sparse parameter will be stored in the end, and why.
void print_layouts(const Experiment& experiment, const std::vector<PlannedParameter>& plan) {
  for (const PlannedParameter& p : plan) {
    if (p.chosen_by.empty()) continue;
    std::printf("%s is stored as %s", p.parameter.c_str(), p.layout.c_str());
    if (p.final_layout != p.layout) std::printf(", in the end as %s", p.final_layout.c_str());
    if (p.pattern.is_structured()) std::printf(", pattern %s", p.pattern.description().c_str());
    const CompressionLimits& limits = experiment.sparsity->compression();
    const Layout* own = find_layout(p.compressed);
    const Layout& compressed = own == nullptr ? csr_layout() : *own;
    const auto limit =
        limits.compress_below.find({p.parameter, std::string(compressed.name()), p.lifetime});
    if (limit != limits.compress_below.end() && p.source != nullptr) {
      const LayoutChoice choice = choice_of(p, limits, compressed);
      std::printf("; %s is faster up to a density of %.2g, in the end %s",
                  std::string(compressed.name()).c_str(), limit->second, choice.reason.c_str());
    }
    std::printf("\n");
  }
}

// By the section `quantize`, where there is one: with the masks that the run begins with.
Config quantized_products(const Experiment& experiment) {
  const Config section = experiment.config.get("quantize");
  if (section.is_null()) return {};
  return planned_products(*experiment.model, QuantizeOptions::from_config(section));
}

// What the run takes, and a step of dense training.
struct PlannedTime {
  PlannedTime(Experiment& experiment, const ModelTable::Counts& counts)
      : less_arithmetic(counts.training > 0.0 ? counts.dense.training / counts.training : 0.0) {
    constexpr double kSeconds = 1.5;
    run = measure_run(experiment, kSeconds);
    if (run) dense = dense_step(experiment, run->step, kSeconds);
  }

  std::optional<RunTime> run = {};
  std::optional<DenseStep> dense = {};
  double less_arithmetic;
};

}  // namespace

int run_plan(const PlanCommand& command) {
  log_to_console(LogLevel::Info);  // that layouts are being measured
  Config config = load_yaml(command.config_path);
  for (const std::string& line : find_beside(config, command.config_path)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  apply_overrides(config, command.overrides);
  write_new_run_keys(config);
  apply_process_options(config);
  MeasuredLength length;
  if (has_seconds(config)) length = build_for_seconds(config, nullptr);
  const auto experiment =
      length.experiment ? std::move(length.experiment) : build_experiment(config);
  const std::vector<PlannedParameter> plan = all_parameters(*experiment);
  const DenseReasons reasons = dense_reasons(*experiment);
  const ModelTable model(*experiment, plan);
  const ExamplePieces evaluation = evaluation_pieces(*experiment);
  const auto unknown = unknown_tokens(*experiment);
  const Config products = quantized_products(*experiment);
  const PlannedTime time(*experiment, model.total());  // last: it trains some steps
  if (command.json) {
    Config entries = Config::list();
    for (const PlannedParameter& parameter : plan) {
      Config entry = to_config(parameter);
      const auto reason = reasons.find(parameter.parameter);
      if (reason != reasons.end()) entry.set("dense_because", reason->second);
      entries.push_back(entry);
    }
    Config report = Config::map({{"steps", experiment->total_steps()},
                                 {"steps_per_epoch", experiment->steps_per_epoch()},
                                 {"numel", experiment->numel()},
                                 {"final_nnz", model.total().final_nnz}});
    ModelTable::write_flops(model.total(), report);
    report.set("evaluation", to_config(evaluation));
    if (time.run) report.set("time", to_config(*time.run, time.dense, time.less_arithmetic));
    report.set("layers", model.to_config());
    report.set("parameters", entries);
    if (!products.is_null()) report.set("quantized_products", products);
    if (!unknown.empty()) {
      Config shares = Config::map();
      for (const auto& [name, share] : unknown) shares.set(name, share);
      report.set("unknown_tokens", shares);
    }
    print_json(report);
    return kDone;
  }
  std::printf("%lld steps, %lld in an epoch; %lld parameters, %lld nonzeros at the end\n\n",
              static_cast<long long>(experiment->total_steps()),
              static_cast<long long>(experiment->steps_per_epoch()),
              static_cast<long long>(experiment->numel()),
              static_cast<long long>(model.total().final_nnz));
  model.print();
  std::printf("\n");
  print_table(plan, reasons);
  print_total(plan);
  if (!experiment->chosen.empty()) std::printf("chosen: %s\n", experiment->chosen.c_str());
  print_layouts(*experiment, plan);
  if (!products.is_null()) std::fputs(planned_lines(products).c_str(), stdout);
  print_unknown_tokens(unknown);
  std::printf("evaluation runs %lld example%s at a time, whose activations take about %.1f MB\n",
              static_cast<long long>(evaluation.examples), evaluation.examples == 1 ? "" : "s",
              evaluation.bytes / 1e6);
  if (!length.note.empty()) std::printf("%s\n", length.note.c_str());
  if (!time.run) std::printf("the time of a step was not measured: it may not fit the memory\n");
  const auto lines = time.run ? time_lines(*time.run, time.dense, time.less_arithmetic)
                              : std::vector<std::string>();
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return kDone;
}

}  // namespace lacuna
