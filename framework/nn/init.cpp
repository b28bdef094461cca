#include "lacuna/framework/nn/init.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// √(numerator / fan); 0 without any inputs, where nothing is drawn.
double spread(double gain, double numerator, int64_t fan) {
  return fan > 0 ? gain * std::sqrt(numerator / static_cast<double>(fan)) : 0.0;
}

constexpr std::array<std::pair<const char*, WeightInit>, 6> kNames{{
    {"default", WeightInit::Default},
    {"kaiming_uniform", WeightInit::KaimingUniform},
    {"kaiming_normal", WeightInit::KaimingNormal},
    {"xavier_uniform", WeightInit::XavierUniform},
    {"xavier_normal", WeightInit::XavierNormal},
    {"zeros", WeightInit::Zeros},
}};

// Those that are written as a map with their standard deviation.
constexpr std::array<std::pair<const char*, WeightInit>, 2> kDraws{{
    {"normal", WeightInit::Normal},
    {"truncated_normal", WeightInit::TruncatedNormal},
}};

WeightInit find_name(const Config& node, const std::string& name,
                     std::span<const std::pair<const char*, WeightInit>> known_names) {
  std::vector<std::string> names;
  for (const auto& [known, init] : known_names) {
    if (name == known) return init;
    names.emplace_back(known);
  }
  node.error("unknown initialization '" + name + "'; " + suggest_name(name, names));
}

WeightDraw read_draw(const Config& node) {
  const WeightInit type = find_name(node.at("type"), node.required<std::string>("type"), kDraws);
  const auto deviation = node.required<double>("std");
  if (!(deviation >= 0.0 && std::isfinite(deviation))) {
    node.at("std").fail("a finite number of at least 0");
  }
  return {type, deviation};
}

}  // namespace

bool WeightDraw::zero_bias() const {
  return type == WeightInit::Zeros || type == WeightInit::Normal ||
         type == WeightInit::TruncatedNormal;
}

Initializer kaiming_uniform(const KaimingOptions& options) {
  return Initializer::uniform(spread(options.gain, 3.0, options.fan_in));
}

Initializer kaiming_normal(const KaimingOptions& options) {
  return Initializer::normal(spread(options.gain, 1.0, options.fan_in));
}

Initializer xavier_uniform(const XavierOptions& options) {
  return Initializer::uniform(spread(options.gain, 6.0, options.fan_in + options.fan_out));
}

Initializer xavier_normal(const XavierOptions& options) {
  return Initializer::normal(spread(options.gain, 2.0, options.fan_in + options.fan_out));
}

Initializer default_linear(int64_t fan_in) {
  return Initializer::uniform(spread(1.0, 1.0, fan_in));
}

Fans fans_of(const Shape& weight) {
  if (weight.rank() < 2) {
    throw ShapeError("fan-in and fan-out need a weight [out, in, ...], found shape " +
                     weight.to_string());
  }
  const int64_t taps = matrix_taps(weight);
  return {.in = weight[1] * taps, .out = weight[0] * taps};
}

Initializer make_initializer(const WeightDraw& init, int64_t fan_in, int64_t fan_out) {
  switch (init.type) {
    case WeightInit::Default:
      return default_linear(fan_in);
    case WeightInit::KaimingUniform:
      return kaiming_uniform({.fan_in = fan_in});
    case WeightInit::KaimingNormal:
      return kaiming_normal({.fan_in = fan_in});
    case WeightInit::XavierUniform:
      return xavier_uniform({.fan_in = fan_in, .fan_out = fan_out});
    case WeightInit::XavierNormal:
      return xavier_normal({.fan_in = fan_in, .fan_out = fan_out});
    case WeightInit::Zeros:
      return Initializer::constant(0.0);
    case WeightInit::Normal:
      return Initializer::normal(init.std);
    case WeightInit::TruncatedNormal:
      return Initializer::truncated_normal(init.std);
  }
  return Initializer::constant(0.0);
}

Initializer make_initializer_for_nonzeros(const WeightDraw& init, int64_t fan_in, int64_t fan_out) {
  Initializer initializer = make_initializer(init, fan_in, fan_out);
  const bool is_xavier =
      init.type == WeightInit::XavierUniform || init.type == WeightInit::XavierNormal;
  initializer.fan = is_xavier ? Initializer::Fan::InAndOut : Initializer::Fan::In;
  return initializer;
}

int64_t FanIn::inputs(int64_t in_features) const {
  if (counts_nonzeros() || inputs_ == 0) return in_features;
  if (inputs_ > 0) return inputs_;
  throw ConfigError(
      fmt::format("init_fan_in must be at least 1, or 0 for all inputs; found {}", inputs_));
}

WeightDraw read_weight_init(const Config& options, std::string_view key) {
  const Config node = options.get(key);
  if (node.is_map()) return read_draw(node);
  const auto name = options.get<std::string>(key, "default");
  return find_name(options.at(key), name, kNames);
}

FanIn read_fan_in(const Config& options, std::string_view key) {
  if (options.get(key).is_number()) {
    return require_at_least(options, key, options.required<int64_t>(key), 0);
  }
  const auto name = options.get<std::string>(key, "all");
  if (name == "all") return FanIn::all();
  if (name == "nonzeros") return FanIn::nonzeros();
  options.at(key).fail("all, nonzeros or a number of inputs");
}

}  // namespace lacuna
