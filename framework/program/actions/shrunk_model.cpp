#include "lacuna/framework/program/actions/shrunk_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/shrink/cut_state.hpp"
#include "lacuna/framework/shrink/fold_constants.hpp"
#include "lacuna/framework/shrink/smaller_model.hpp"
#include "lacuna/framework/shrink/unit_choice.hpp"
#include "lacuna/framework/shrink/unit_scores.hpp"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/loop/run_timing.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/options/filter.h"
#include "lacuna/sparsity/options/target.h"

namespace lacuna {
namespace {

constexpr double kTimedSeconds = 1.0;  // of steps, for each number of units that is tried
// Blocks of units that are tried again after the search. Each try of a time is measured.
constexpr int kRefills = 200, kTimedRefills = 4;
// A budget counts as used where what is left is this part of it.
constexpr double kLeastUse = 0.9;

// The sparsity that an entry of the section `sparsity` asks for at every step of a parameter of
// that shape; nothing if it changes, or if a pattern or the algorithm determines it.
std::optional<double> constant_sparsity(const Config& entry, const Shape& shape) {
  const std::array keys{"sparsity", "schedule", "density", "fan_in"};
  const auto is_given = [&](const char* key) { return !entry.peek(key).is_null(); };
  const bool is_of_pattern = PatternShape::from_config(entry.peek("pattern")).is_nm();
  if (is_of_pattern || std::ranges::none_of(keys, is_given)) return std::nullopt;
  const SparsityTarget target = SparsityTarget::from_config(entry);
  if (!target.is_constant()) return std::nullopt;
  return target.sparsity_at(0, 0, shape);
}

bool redistributes(const Config& entry) {
  const Config given = entry.peek("redistribute");
  return entry.peek("algorithm").text() == "snfs" && (given.is_null() || given.as<bool>());
}

// The sparsity that counts so many nonzeros, or the next one that does not count fewer.
float sparsity_of(int64_t nonzeros, int64_t numel) {
  const double exact = 1.0 - static_cast<double>(nonzeros) / static_cast<double>(numel);
  auto sparsity = static_cast<float>(exact);
  while (sparsity > 0.0f && target_nnz(sparsity, numel) < nonzeros) {
    sparsity = std::nextafter(sparsity, 0.0f);
  }
  return sparsity;
}

// Gradients over examples that lie evenly in the training data.
GradientRun gradient_run(const Experiment& e, const CalibrationOptions& options) {
  return [&e, options](Module& model, const std::function<void()>& after_batch) {
    const int64_t count = *options.examples, size = e.data.train->size();
    model.eval();
    for (int64_t first = 0; first < count; first += *options.batch_size) {
      std::vector<int64_t> indices;
      for (int64_t i = first; i < std::min(first + *options.batch_size, count); ++i) {
        indices.push_back(i * size / count);
      }
      const Batch batch = e.data.train->gather(indices);
      backward(e.loss(run_for_loss(model, batch), batch));
      after_batch();
    }
    model.train();
  };
}

Config model_section(const Config& before, const Config& layers) {
  Config model = Config::map({{"layers", layers}});
  if (!before.is_map()) return model;
  for (const char* key : {"frozen", "attention_scale"}) {  // exports fold the scale into weights
    if (before.has(key)) model.set(key, before.get(key).clone());
  }
  return model;
}

}  // namespace

ShrunkModel::ShrunkModel(Experiment& from, const Config& config, const ShrinkOptions& options,
                         const Config& section)
    : from_(from), config_(config.clone()), units_(*from.model, from.data.train->example_shape()) {
  before_ = costs(without_first(units_, {}, 0));
  if (options.method != ShrinkMethod::Magnitude) {
    calibration_ = calibration_on(section, options.calibration, from.data.train->size(),
                                  from.train.batch_size);
  }
  const auto of_data = [&](const DataError& error) {
    return DataError(section.where() + ": " + error.what());
  };
  try {
    kept_ = choose(options, section);
  } catch (const ConfigError& error) {
    if (std::string_view(error.what()).starts_with(section.where())) throw;
    section.error(error.what());
  } catch (const DataError& error) {
    throw of_data(error);
  }
  const double seconds = after_.seconds;
  after_ = costs(kept_);
  after_.seconds = seconds;
  try {
    fit(options);
  } catch (const DataError& error) {
    throw of_data(error);
  }
}

ShrinkCosts ShrunkModel::costs(const KeptUnits& kept) const {
  const UnitsCost sparse = cost_of(*from_.model, from_.rows, units_, kept);
  const UnitsCost dense = dense_cost_of(*from_.model, from_.rows, units_, kept);
  return {.flops = sparse.flops,
          .parameters = sparse.parameters,
          .bytes = sizeof(float) * dense.parameters};
}

CalibrationRun ShrunkModel::calibration() const {
  const CalibrationData data =
      calibration_data(from_.data.train, from_.train.seed, from_.train.batch_size);
  return [data, chosen = calibration_](Module& model) { data.run(model, chosen); };
}

// The remaining units compensate for the removed ones.
void ShrunkModel::fit(const ShrinkOptions& options) {
  if (options.method == ShrinkMethod::Error && options.least_squares) {
    fit_without_units(*from_.model, units_, kept_, calibration());
  }
  if (options.method != ShrinkMethod::Dead) return;
  const std::vector<std::string> without =
      fold_constants(*from_.model, from_.data.train->example_shape(), units_, kept_, calibration());
  if (without.empty()) return;
  messages_.push_back(fmt::format(
      "constant outputs of removed units are lost after {}, because no dense bias and no "
      "batch_norm takes what these weights give, or other layers share them",
      join(without, ", ")));
}

std::vector<double> ShrunkModel::scores(const ShrinkOptions& options) {
  if (options.method == ShrinkMethod::Magnitude) return magnitude_scores(units_);
  if (options.method == ShrinkMethod::Saliency) {
    return saliency_scores(*from_.model, units_, gradient_run(from_, calibration_));
  }
  return error_scores(*from_.model, units_, calibration());
}

KeptUnits ShrunkModel::choose(const ShrinkOptions& options, const Config& section) {
  if (options.method == ShrinkMethod::Dead) {
    KeptUnits living = living_units(units_, options);
    for (const UnitGraph::Slice& slice : units_.slices) {  // an index of each dimension stays
      if (kept_indices(slice.units, living).empty()) {
        living[static_cast<size_t>(slice.units.front())] = 1;
      }
    }
    return living;
  }
  return choose_within(scores(options), options, section);
}

double ShrunkModel::part_left(const KeptUnits& kept, const ShrinkOptions& options) const {
  if (options.budget == ShrinkBudget::Time) return step_seconds(kept) / before_.seconds;
  const UnitsCost cost = cost_of(*from_.model, from_.rows, units_, kept);
  return options.budget == ShrinkBudget::Flops ? cost.flops / before_.flops
                                               : cost.parameters / before_.parameters;
}

KeptUnits ShrunkModel::choose_within(const std::vector<double>& scores,
                                     const ShrinkOptions& options, const Config& section) {
  removal_order(units_, from_.rows, scores, options);  // refuses layers that cannot be cut
  const KeptUnits all = without_first(units_, {}, 0);
  const bool is_time = options.budget == ShrinkBudget::Time;
  if (is_time) before_.seconds = step_seconds(all);
  std::map<KeptUnits, double> parts{{all, 1.0}};  // each is measured once
  const BudgetSearch search{.target = options.to,
                            .part =
                                [&](const KeptUnits& kept) {
                                  const auto [known, is_new] = parts.try_emplace(kept, 0.0);
                                  if (is_new) known->second = part_left(kept, options);
                                  return known->second;
                                },
                            .most_refills = is_time ? kTimedRefills : kRefills};
  const auto blocks = [&](const std::vector<int64_t>& multiples) {
    return removal_blocks(units_, from_.rows, scores, options, multiples);
  };
  Rounding rounding = options.round_to;
  if (rounding.is_auto) rounding.of_patterns = pattern_multiples();
  // Smaller multiples take as long for fewer channels, so for a time they are no closer.
  const double least_use = is_time ? 0.0 : kLeastUse;
  RoundedChoice choice = choose_rounded(units_, rounding, blocks, search, least_use);
  if (!choice.kept) {
    Rounding finest = rounding;
    if (finest.is_auto) finest.multiple = 1;
    const std::string multiples =
        finest.multiple > 1
            ? fmt::format(", and counts are multiples of {} (round_to)", finest.multiple)
        : finest.of_patterns.empty() ? ""
                                     : ", and counts fit the patterns of `sparsity`";
    const KeptUnits least = without_all(units_, blocks(multiples_of_units(units_, finest)));
    section.at("to").error(fmt::format(
        "{} of {:g} cannot be reached: {:.3g} remains even if every layer keeps only the fraction "
        "keep_at_least ({:g}){}{}",
        to_string(options.budget), options.to, search.part(least), options.keep_at_least, multiples,
        options.layers.empty() ? "" : " and only `layers` are cut"));
  }
  rounding_ = choice.rounding;
  const double part = search.part(*choice.kept);
  if (is_time) after_.seconds = part * before_.seconds;
  report_rounding(part, options);
  return std::move(*choice.kept);
}

// What the section `sparsity` of the smaller run needs. A section that does not fit the whole model
// may fit the smaller one, with a `round_to` of the user's.
std::vector<int64_t> ShrunkModel::pattern_multiples() const {
  if (config_.get("sparsity").is_null()) return {};
  std::unique_ptr<Experiment> whole;
  try {
    whole = build(without_first(units_, {}, 0));
  } catch (const Error&) {
    return {};
  }
  if (whole->sparsity == nullptr) return {};
  return multiples_of_patterns(units_, [&](const Parameter& parameter) {
    return whole->sparsity->pattern(*whole->model->parameter(parameter.name()));
  });
}

// Multiples that the user chose, and that miss the budget.
void ShrunkModel::report_rounding(double part, const ShrinkOptions& options) {
  if (options.round_to.is_auto || rounding_.multiple == 1 || part >= kLeastUse * options.to) return;
  messages_.push_back(
      fmt::format("{:.3g} of the {} is left, although {:g} was allowed, because counts are "
                  "multiples of {}; round_to: auto comes closer",
                  part, to_string(options.budget), options.to, rounding_.multiple));
}

double ShrunkModel::step_seconds(const KeptUnits& kept) const {
  const auto smaller = build(kept);
  const std::optional<double> seconds = measure_step(*smaller, kTimedSeconds);
  if (seconds) return *seconds;
  throw ConfigError(
      "a budget of time needs steps that can be timed, but the loss of this model is not finite, "
      "or its training does not fit into memory");
}

std::unique_ptr<Experiment> ShrunkModel::build(const KeptUnits& kept) const {
  Config config = config_.clone();
  config.set("model", model_section(config_.get("model"),
                                    smaller_layers(from_.layers, *from_.model, units_, kept)));
  auto smaller = build_experiment_on(from_.data, config, Start::FromCheckpoint);
  smaller->model->load_state_dict(cut_model_state(*from_.model, units_, kept));
  return smaller;
}

std::unique_ptr<Experiment> ShrunkModel::build() const { return build(kept_); }

void ShrunkModel::leave_out_finished_sparsity() {
  if (config_.get("sparsity").is_null()) return;
  if (!removes_all_zeros(*from_.model, units_, kept_)) return;
  config_.set("sparsity", Config());
  messages_.push_back(
      "all masked units are removed, so the smaller run is dense and has no section `sparsity` "
      "(give one to mask more)");
}

void ShrunkModel::keep_nonzeros() {
  const Config section = config_.get("sparsity");
  const bool is_list = section.is_list();
  if (!is_list && (!section.is_map() || section.has("phases"))) return;
  const ParameterCuts cuts(units_, kept_);
  std::vector<ParameterPtr> open = from_.model->parameters();  // that no earlier entry takes
  Config entries = Config::list();
  std::vector<std::string> changed;
  bool redistributed = false;
  for (const Config& entry : is_list ? section.items() : std::vector<Config>{section}) {
    const ParameterFilter filter = ParameterFilter::from_config(entry.get("param_filter"));
    bool takes_others = false;
    for (ParameterPtr& parameter : open) {
      if (parameter == nullptr || !filter.matches(*parameter)) continue;
      const ParameterPtr taken = std::exchange(parameter, nullptr);
      const Shape shape = cuts.shape_of(*taken);
      const std::optional<double> given = constant_sparsity(entry, shape);
      takes_others |= !given;
      if (!given || taken->pattern()->is_dense() || cuts.fills(*taken)) continue;
      const float sparsity = sparsity_of(cuts.nonzeros(*taken), shape.numel());
      Config own = entry.clone();
      for (const char* key : {"schedule", "density", "fan_in"}) own.erase(key);
      own.set("sparsity", Config::plain(fmt::format("{}", sparsity)));
      own.set("param_filter", Config::list({taken->name()}));
      if (redistributes(entry)) {  // between the weights of an entry, of which there is one
        own.set("redistribute", false);
        redistributed |= filter.select(from_.model->parameters()).size() > 1;
      }
      entries.push_back(own);
      if (sparsity < *given - 0.001) {
        changed.push_back(fmt::format("{} {:.3f} (was {:.3f})", taken->name(), sparsity, *given));
      }
    }
    if (takes_others && is_list) entries.push_back(entry.clone());
  }
  if (changed.empty()) return;
  config_.set("sparsity", entries);
  messages_.push_back(fmt::format(
      "the sparsities of `sparsity` are lowered, so that no more of the remaining nonzeros are "
      "removed: {}; give a `sparsity` section to choose others",
      join(changed, ", ")));
  if (!redistributed) return;
  messages_.push_back(
      "snfs no longer moves nonzeros between weights, because each now has its own sparsity");
}

std::string ShrunkModel::take_states(Experiment& smaller, const StateDict& saved) const {
  if (saved.empty()) return "the checkpoint has none";
  const auto& type = saved.get<std::string>("type");
  if (type != smaller.optimizer->type()) {
    return fmt::format("they belong to {}, and the optimizer is now {}", type,
                       smaller.optimizer->type());
  }
  try {
    smaller.optimizer->load_state_dict(cut_optimizer_state(saved, *from_.model, units_, kept_));
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

}  // namespace lacuna
