#include "lacuna/framework/program/actions/shrink_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/actions/shrunk_model.hpp"
#include "lacuna/framework/program/actions/source_run.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/sparsity/masks/mask_selector.h"

namespace lacuna {
namespace {

// The configuration of what to remove, as it is in the file.
Config given_section(const ShrinkRequest& request) {
  Config given = Config::map();
  if (!request.config_path.empty()) {
    given = read_given({.path = request.config_path}, request.report_line);
  } else if (!request.config.is_null()) {
    given = request.config.clone();
  }
  if (!given.is_map()) given.fail("a map with `shrink`");
  if (!given.has("shrink") && (request.method || request.to || request.round_to)) {
    given.set("shrink", Config::map());
    given.get("shrink").set_position({.file = "shrink without CONFIG"});
  }
  return given;
}

// --method, --to, --round-to, --set and --threads.
void apply_shrink_options(Config& given, const ShrinkRequest& request) {
  std::vector<std::string> assignments;
  if (request.method) assignments.push_back("shrink.method=" + *request.method);
  if (request.to) {
    const size_t sign = request.to->find('=');
    if (sign == std::string::npos) {
      throw ConfigError("--to " + *request.to +
                        ": give what remains, as in --to flops=0.5 (or parameters, time)");
    }
    assignments.push_back("shrink.to={" + request.to->substr(0, sign) + ": " +
                          request.to->substr(sign + 1) + "}");
  }
  if (request.round_to) assignments.push_back("shrink.round_to=" + *request.round_to);
  apply_overrides(given, assignments);
  apply_overrides(given, request.overrides);
  if (request.threads) apply_overrides(given, {"train.threads=" + *request.threads});
  if (given.has("shrink")) return;
  throw ConfigError(
      "shrink needs --to flops=F, or a CONFIG file with a section `shrink` "
      "(docs/guides/shrinking.md)");
}

// Settings that cannot be used with a model that is made smaller.
void refuse_sections(const SourceRun& source, const Config& given, const Config& config) {
  if (source.config && given.has("model")) {
    given.get("model").error("the model is the run's; leave it out");
  }
  if (config.has("parametrization") && !config.get("parametrization").is_null()) {
    config.get("parametrization")
        .error(
            "learning rates depend on the width, so the smaller model would get different ones; "
            "give parametrization: null in CONFIG, and the rates to use");
  }
  if (!source.checkpoint.state.below("quantized").empty()) {
    throw ConfigError(
        "'" + source.path +
        "' is quantized; shrink the run that it was made from, and quantize the result");
  }
}

// The trained model, with the masks that it has and no algorithm that changes them.
std::unique_ptr<Experiment> trained_model(Config config, const Config& given,
                                          const SourceRun& source) {
  config.erase("sparsity");
  start_from_source(config, given, source.path, "shrink");
  auto e = build_experiment(config, Start::Untrained);
  report_changed_data(source, given, *e);
  if (e->average != nullptr && source.config) {  // what is evaluated is what is made smaller
    naming_file(source.path, [&] {
      load_average(source.checkpoint.state.below("ema"), *e->model, e->model->buffers());
    });
  }
  return e;
}

Config rows_of(const ShrunkModel& model) {
  Config rows = Config::list();
  const std::vector<int64_t> multiples = model.multiples();
  for (const UnitGroup& group : model.units().groups) {
    int64_t left = 0;
    for (const int32_t unit : group.units) left += model.kept()[static_cast<size_t>(unit)];
    Config layers = Config::list();
    for (const std::string& layer : group.layers) layers.push_back(layer);
    Config row = Config::map(
        {{"layers", layers}, {"units", static_cast<int64_t>(group.units.size())}, {"kept", left}});
    if (group.why_fixed.empty() && !group.units.empty()) {
      row.set("round_to", multiples[static_cast<size_t>(group.units.front())]);
    } else {
      row.set("fixed_because", group.why_fixed);
    }
    rows.push_back(row);
  }
  return rows;
}

Config costs_of(const ShrunkModel& model) {
  const ShrinkCosts &before = model.before(), &after = model.after();
  const auto pair = [](double was, double is) {
    return Config::map({{"before", was}, {"after", is}, {"part", was > 0.0 ? is / was : 1.0}});
  };
  Config costs = Config::map({{"flops", pair(before.flops, after.flops)},
                              {"parameters", pair(before.parameters, after.parameters)},
                              {"bytes", pair(before.bytes, after.bytes)}});
  if (after.seconds > 0.0) costs.set("seconds", pair(before.seconds, after.seconds));
  return costs;
}

// Masks that were N:M or blocks, and are not any more without the removed rows or columns.
std::vector<std::string> lost_patterns(const Experiment& e) {
  std::vector<std::string> lines;
  if (e.sparsity == nullptr) return lines;
  for (const ParameterPtr& parameter : e.sparsity->parameters()) {
    const PatternShape pattern = e.sparsity->pattern(*parameter);
    if (!pattern.is_structured() || parameter->pattern()->is_dense()) continue;
    const MaskSelector selector(ScoreGroups(), pattern, parameter->shape());
    if (selector.fit(MaskSet(parameter->pattern())) == MaskSelector::Fit::Whole) continue;
    lines.push_back(fmt::format(
        "the rest of the mask of {} no longer has the pattern {}: it is kept as it is, and stored "
        "as {}, until `sparsity` updates it",
        parameter->name(), pattern.description(), parameter->pattern()->layout().name()));
  }
  return lines;
}

std::string table(const Config& report, const ShrunkModel& model) {
  size_t width = 6;
  for (const UnitGroup& group : model.units().groups) width = std::max(width, group.name().size());
  std::string text =
      fmt::format("{:<{}}  {:>6} {:>6} {:>8}\n", "layers", width, "units", "kept", "round to");
  const std::vector<Config> rows = report.at("rows").items();
  for (size_t i = 0; i < rows.size(); ++i) {
    const UnitGroup& group = model.units().groups[i];
    const Config multiple = rows[i].peek("round_to");
    text +=
        fmt::format("{:<{}}  {:>6} {:>6} {:>8}{}\n", group.name(), width, group.units.size(),
                    rows[i].required<int64_t>("kept"), multiple.is_null() ? "" : multiple.text(),
                    group.why_fixed.empty() ? "" : "  " + group.why_fixed);
  }
  for (const auto& [name, cost] : report.at("costs").entries()) {
    text += fmt::format("{:<10}  {:.4g} of {:.4g}: {:.4f}\n", name, cost.required<double>("after"),
                        cost.required<double>("before"), cost.required<double>("part"));
  }
  for (const Config& message : report.at("messages").items()) text += message.text() + "\n";
  for (const char* when : {"before", "after"}) {
    if (report.get(when).is_null()) continue;
    for (const Config& split : report.at(when).at("splits").items()) {
      text += fmt::format("{:<7} {})\n", when, describe_evaluation(split));
    }
  }
  return text;
}

}  // namespace

ShrunkRun shrink_run(const ShrinkRequest& request) {
  if (request.run_dir.empty()) throw ConfigError("the run folder's name is empty");
  RunFolder::require_unused(request.run_dir);
  const SourceRun source = read_source_run(request.checkpoint, request.last, request.report_line);
  Config given = given_section(request);
  take_sections(given, source, request.overrides, {"train", "shrink"});
  apply_shrink_options(given, request);
  const Config section = given.get("shrink");
  const ShrinkOptions options = ShrinkOptions::from_config(section);
  given.erase("shrink");
  Config config = merge_sections(source, given, "shrink");
  refuse_own_folder(given, request.run_dir, request.overrides);
  refuse_sections(source, given, config);
  config.set("run_dir", request.run_dir);
  report_moved_split(source, config);
  make_paths_absolute(config);
  apply_process_options(config);
  const auto whole = trained_model(config.clone(), given, source);
  Config report = Config::map({{"checkpoint", source.path},
                               {"step", source.checkpoint.step},
                               {"method", to_string(options.method)}});
  const Config before = evaluation_of(*whole);
  ShrunkModel model(*whole, config, options, section);
  if (!given.has("sparsity")) {
    model.leave_out_finished_sparsity();
    model.keep_nonzeros();
  }
  const auto e = model.build();
  Config messages = Config::list();
  for (const std::string& message : model.messages()) messages.push_back(message);
  const std::string without = model.take_states(*e, source.checkpoint.state.below("optimizer"));
  if (!without.empty()) {
    messages.push_back("the optimizer starts without states: " + without);
  }
  for (const std::string& line : lost_patterns(*e)) messages.push_back(line);
  if (e->sparsity != nullptr) e->write_layouts();
  report.set("rows", rows_of(model));
  report.set("costs", costs_of(model));
  report.set("messages", messages);
  report.set("before", before);
  report.set("after", evaluation_of(*e));
  const std::string text = table(report, model);
  write_new_run(request.run_dir, e->config, [&](const RunFolder& folder) {
    log_to_file(folder.log_path());
    log_info_to_file("shrunk " + source.path + "\n" + text);
    folder.save_checkpoint(first_checkpoint(*e), e->train.checkpoint.keep_last);
    write_file_atomically(folder.path() + "/shrink.json", json_text(report));
  });
  return {.report = report, .text = text};
}

}  // namespace lacuna
