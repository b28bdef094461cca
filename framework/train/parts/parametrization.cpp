#include "lacuna/framework/train/parts/parametrization.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/presets/presets.hpp"
#include "lacuna/sparsity/weights/master_weight.h"

namespace lacuna {
namespace {

double read_width(const Config& section, const char* key, double value) {
  constexpr double kWidest = 0x1.0p31;
  if (!(value > 0.0)) section.at(key).fail("a number above 0");
  if (value > kWidest) section.at(key).fail("a number of at most 2³¹");
  return value;
}

bool is_matrix(ParameterRole role) {
  return role == ParameterRole::Input || role == ParameterRole::Hidden ||
         role == ParameterRole::Output;
}

// The deviation of first values over that of the base, and the factor of the learning rate.
struct ValueAndRate {
  double value = 1.0, rate = 1.0;
};

ValueAndRate value_and_rate(UpdateRule rule, const SizedParameter& p, double density,
                            bool divides_outputs) {
  const double root = std::sqrt(density), wide = std::sqrt(p.in);
  // Before a batch norm only a row's direction has an effect, and a sparse one turns √density times
  // as far.
  const double connected = p.is_normalized ? root : density;
  const bool is_sgd = rule == UpdateRule::Gradient;
  switch (p.role) {
    case ParameterRole::Input:
      return {1.0 / root, (is_sgd ? p.out : 1.0) / connected};
    case ParameterRole::Hidden:
      return {1.0 / (wide * root), (is_sgd ? p.out : 1.0) / (p.in * connected)};
    case ParameterRole::Output:
      return divides_outputs ? ValueAndRate{1.0 / (p.in * root), 1.0 / (p.in * connected)}
                             : ValueAndRate{1.0 / root, 1.0 / connected};
    case ParameterRole::Vector:
    case ParameterRole::Table:
      return {1.0, is_sgd ? p.out : 1.0};
    case ParameterRole::LastNorm:
      if (!divides_outputs) return {1.0, is_sgd ? p.out : 1.0};
      return {1.0 / p.in, is_sgd ? p.out / (p.in * p.in) : 1.0 / p.in};
  }
  return {};
}

}  // namespace

ParametrizationOptions read_parametrization(const Config& section) {
  if (!section.is_map()) section.fail("a map with `type`");
  const auto type = section.required<std::string>("type");
  static const std::vector<std::string> known = {"sparse_mup"};
  if (type != "sparse_mup") {
    section.at("type").error("unknown parametrization '" + type + "'; " +
                             suggest_name(type, known));
  }
  ParametrizationOptions o;
  o.base_width = read_width(section, "base_width", section.get("base_width", o.base_width));
  o.base_density = section.get("base_density", o.base_density);
  if (!(o.base_density > 0.0 && o.base_density <= 1.0)) {
    section.at("base_density").fail("a fraction in (0, 1]");
  }
  o.width = section.optional<double>("width");
  if (o.width) read_width(section, "width", *o.width);
  o.output_multiplier = section.get("output_multiplier", o.output_multiplier);
  o.attention_scale = section.get("attention_scale", o.attention_scale);
  const auto decay = section.get<std::string>("weight_decay", "width");
  if (decay != "none" && decay != "width" && decay != "all") {
    section.at("weight_decay").fail("none, width or all");
  }
  using Decay = ParametrizationOptions::Decay;
  o.weight_decay = decay == "none" ? Decay::None : decay == "all" ? Decay::All : Decay::Width;
  const auto density = section.get<std::string>("density", "present");
  if (density != "first" && density != "present") section.at("density").fail("first or present");
  if (density == "first") o.density = ParametrizationOptions::Density::First;
  return o;
}

ParameterScale sparse_mup(UpdateRule rule, const SizedParameter& p, double density,
                          const ParametrizationOptions& options) {
  const bool divides = options.output_multiplier;
  const ValueAndRate scale = value_and_rate(rule, p, density, divides);
  const double drawn_for = p.counts_nonzeros ? 1.0 : density;
  ParameterScale result{.first = p.drawn * value_and_rate(rule, p, drawn_for, divides).value};
  result.update.lr = scale.rate;
  if (p.role == ParameterRole::Hidden) result.update.eps = 1.0 / p.in;
  if (options.weight_decay == ParametrizationOptions::Decay::None) return result;
  const bool is_of_width = options.weight_decay == ParametrizationOptions::Decay::Width;
  const ValueAndRate kept = value_and_rate(rule, p, is_of_width ? 1.0 : density, divides);
  result.update.weight_decay =
      rule == UpdateRule::Adam ? result.update.eps / kept.value : 1.0 / kept.rate;
  return result;
}

Parametrization::Parametrization(const ParametrizationOptions& options,
                                 std::vector<SizedParameter> parameters, UpdateRule rule)
    : options_(options), parameters_(std::move(parameters)), rule_(rule) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    index_[parameters_[i].parameter.get()] = i;
    first_nnz_.push_back(parameters_[i].parameter->numel());
  }
  is_sparse_.resize(parameters_.size(), false);
  is_pruned_first_.resize(parameters_.size(), false);
}

void Parametrization::take_first_densities(const SparsityAlgorithm* algorithm,
                                           const std::vector<PlannedParameter>& plan) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    first_nnz_[i] = parameters_[i].parameter->pattern()->nnz();
    is_sparse_[i] = first_nnz_[i] < parameters_[i].parameter->numel();
  }
  if (algorithm == nullptr) return;
  for (const ParameterPtr& parameter : algorithm->sparse_parameters()) {
    const auto found = index_.find(parameter.get());
    if (found != index_.end()) is_sparse_[found->second] = true;
  }
  // What the first step prunes before it changes any value.
  std::set<std::string> seen;
  for (const PlannedParameter& planned : plan) {
    const auto found = index_.find(planned.source);
    if (found == index_.end() || !seen.insert(planned.parameter).second) continue;
    if (planned.update_steps == std::vector<int64_t>{1}) {
      first_nnz_[found->second] = planned.final_nnz;
      is_pruned_first_[found->second] = true;
    }
  }
}

// How the first step has shared out the nonzeros may differ from the plan.
void Parametrization::take_pruned() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (is_pruned_first_[i]) first_nnz_[i] = parameters_[i].parameter->pattern()->nnz();
  }
}

double Parametrization::first_density(const SizedParameter& sized) const {
  const size_t i = index_.at(sized.parameter.get());
  if (!is_matrix(sized.role) || !is_sparse_[i]) return 1.0;
  const auto nnz = static_cast<double>(std::max<int64_t>(first_nnz_[i], 1));
  return nnz / static_cast<double>(sized.parameter->numel()) / options_.base_density;
}

void Parametrization::scale_first_values() {
  scales_values_ = true;
  for (const SizedParameter& sized : parameters_) {
    const double factor = sparse_mup(rule_, sized, first_density(sized), options_).first;
    if (factor == 1.0) continue;
    const auto multiply = [&](Tensor& values) {
      for (float& value : values.mutable_storage()) {
        value = static_cast<float>(static_cast<double>(value) * factor);
      }
    };
    multiply(sized.parameter->mutable_values());
    for (auto& [name, slot] : sized.parameter->slots()) multiply(slot.values);  // a dense master
    sized.parameter->mark_pruned();
  }
}

UpdateFactors Parametrization::factors(const Parameter& parameter, int64_t steps_done) const {
  const auto found = index_.find(&parameter);
  if (found == index_.end()) return {};
  const SizedParameter& sized = parameters_[found->second];
  double density = first_density(sized);
  // The first step prunes before it changes values, where an algorithm does.
  const bool has_pruned = steps_done == 0 && is_pruned_first_[found->second] &&
                          parameter.pattern()->nnz() < parameter.numel();
  const bool follows =
      is_matrix(sized.role) && is_sparse_[found->second] &&
      (has_pruned ||
       (options_.density == ParametrizationOptions::Density::Present && steps_done > 0));
  if (follows && master_of(parameter) == nullptr) {
    const auto nnz = static_cast<double>(std::max<int64_t>(parameter.pattern()->nnz(), 1));
    density = nnz / static_cast<double>(parameter.numel()) / options_.base_density;
  }
  return sparse_mup(rule_, sized, density, options_).update;
}

void Parametrization::follow(Optimizer& optimizer) {
  optimizer.set_factors([this, &optimizer](const Parameter& parameter) {
    return factors(parameter, optimizer.steps());
  });
  after_step_ = optimizer.register_step_post_hook([this](Optimizer& stepped) {
    if (stepped.steps() == 1) take_pruned();
  });
}

std::vector<Parametrization::Row> Parametrization::rows(const Optimizer& optimizer) const {
  std::vector<Row> rows;
  for (const SizedParameter& sized : parameters_) {
    const double density = first_density(sized);
    rows.push_back(
        {.sized = &sized,
         .density = density,
         .first = scales_values_ ? sparse_mup(rule_, sized, density, options_).first : 1.0,
         .update = optimizer.factors(*sized.parameter)});
  }
  return rows;
}

StateDict Parametrization::state_dict() const {
  StateDict state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_matrix(parameters_[i].role)) continue;
    state.set(parameters_[i].parameter->name() + "/nnz", first_nnz_[i]);
  }
  state.set("output_multiplier", int64_t{options_.output_multiplier ? 1 : 0});
  return state;
}

void Parametrization::load_state_dict(const StateDict& state) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_matrix(parameters_[i].role)) continue;
    const Parameter& parameter = *parameters_[i].parameter;
    first_nnz_[i] = state.count(parameter.name() + "/nnz", parameter.numel());
    if (first_nnz_[i] < parameter.numel()) is_sparse_[i] = true;
  }
  // Earlier versions did not write it, and never divided the outputs of loaded weights.
  if (state.contains("output_multiplier")) {
    options_.output_multiplier = state.count("output_multiplier", 1) == 1;
  }
}

bool has_own_scale(const Config& config) {
  const Config model = config.peek("model");
  return model.is_map() && !model.peek("init_from").is_null();
}

SizedModel size_model(const Config& config, const ParametrizationOptions& options,
                      const ModelLayers& layers, Module& model, const Shape& example) {
  const Config section = config.at("model");
  std::optional<double> width = options.width;
  const auto preset = preset_widths(section);
  if (!width && preset) width = section.at(preset->keys.front()).as<double>();
  SizedModel sized = size_parameters(layers, model, example, options.base_width, width);
  if (!sized.head_without_norm.empty() && options.output_multiplier && !has_own_scale(config)) {
    const Config parametrization = config.at("parametrization");
    parametrization.at("output_multiplier")
        .error(fmt::format("{} is tied to an embedding, and no norm comes before it that could "
                           "divide the outputs; give output_multiplier: false",
                           sized.head_without_norm));
  }
  return sized;
}

bool write_attention_scale(Config& config, const ModelLayers& layers, Module& model,
                           const Shape& example) {
  if (!config.has("parametrization") || has_own_scale(config)) return false;
  const Config section = config.at("parametrization");
  const ParametrizationOptions options = read_parametrization(section);
  if (!options.attention_scale) return false;
  const SizedModel sized = size_model(config, options, layers, model, example);
  const auto is_wider = [](const SizedAttention& attention) { return attention.ratio != 1.0; };
  if (std::ranges::none_of(sized.attention, is_wider)) return false;
  const double scale = sized.attention.front().scale;
  for (const SizedAttention& attention : sized.attention) {
    if (attention.scale == scale) continue;
    attention.node.error(
        "the parametrization gives the attention layers different scales; give each a `scale`, or "
        "parametrization.attention_scale: false");
  }
  if (config.at("model").is_list()) {
    config.set("model", Config::map({{"layers", config.at("model")}}));
  }
  Config written = config.at("model");
  written.set("attention_scale", scale);
  return true;
}

}  // namespace lacuna
