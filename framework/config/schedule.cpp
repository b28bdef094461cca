#include "lacuna/framework/config/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "lacuna/framework/config/integer_range.h"

namespace lacuna {
namespace {

// A step of a list, before or after the first.
void require_step(const Config& step) {
  const auto value = step.as<int64_t>();
  if (value < -kMostInteger || value > kMostInteger) {
    step.fail(fmt::format("a step from {} to {}", -kMostInteger, kMostInteger));
  }
}

float read_float(const Config& config, std::string_view key) { return config.required<float>(key); }

// A number in the range of floats, with double precision.
double read_double(const Config& config, std::string_view key) {
  read_float(config, key);
  return config.required<double>(key);
}
double read_double(const Config& config, std::string_view key, double fallback) {
  config.get<float>(key, static_cast<float>(fallback));
  return config.get<double>(key, fallback);
}

Schedule make_linear(const Config& c) {
  const float init = read_float(c, "init"), slope = read_float(c, "slope");
  return {[=](int64_t t, int64_t) { return init + static_cast<float>(t) * slope; }, c};
}

// What cstorch computes from numbers alone has double precision; what it multiplies by a function
// of the step, and all that follows, has float precision.
Schedule make_exp(const Config& c) {
  const double init = read_double(c, "init"), final = read_double(c, "final", 1.0);
  const float gamma = read_float(c, "gamma");
  const auto end = static_cast<float>(final), way = static_cast<float>(init - final);
  return {[=](int64_t t, int64_t) { return end + way * std::exp(static_cast<float>(t) * gamma); },
          c};
}

Schedule make_power(const Config& c) {
  const float init = read_float(c, "init"), beta = read_float(c, "beta");
  return {[=](int64_t t, int64_t) { return init * std::pow(beta, static_cast<float>(t)); }, c};
}

// From init to minimum over the half period, and back.
struct Cosine {
  explicit Cosine(const Config& c)
      : init(read_double(c, "init")),
        minimum(read_double(c, "minimum", 0.0)),
        half_period(c.required<double>("half_period")) {
    if (!(half_period > 0)) c.at("half_period").fail("a number of steps above 0");
  }

  float at(int64_t t) const {
    const double middle = (init + minimum) / 2;
    const auto offset = static_cast<float>(middle), amplitude = static_cast<float>(init - middle);
    const auto frequency = static_cast<float>(std::numbers::pi / half_period);
    return offset + amplitude * std::cos(frequency * static_cast<float>(t));
  }

  double init, minimum, half_period;
};

Schedule make_cosine(const Config& c) {
  return {[cosine = Cosine(c)](int64_t t, int64_t) { return cosine.at(t); }, c};
}

Schedule make_cosine_once(const Config& c) {
  const Cosine cosine(c);
  const auto start = require_at_least(c, "start", c.get<int64_t>("start", 0), 0);
  return {[=](int64_t t, int64_t) {
            const int64_t since = std::max<int64_t>(t - start, 0);
            return static_cast<double>(since) >= cosine.half_period
                       ? static_cast<float>(cosine.minimum)
                       : cosine.at(since);
          },
          c};
}

Schedule make_cycling(const Config& c) {
  const Config list = c.is_list() ? c : c.at("values");
  std::vector<float> values;
  for (const Config& item : list.items()) values.push_back(item.as<float>());
  if (values.empty()) list.fail("at least one value");
  return {[=](int64_t, int64_t updates) {
            return values[static_cast<size_t>(updates) % values.size()];
          },
          c};
}

Schedule make_polynomial(const Config& c) {
  const float init = read_float(c, "init"), final = read_float(c, "final");
  const auto start = c.required<int64_t>("start"), end = c.required<int64_t>("end");
  const float power = c.get<float>("power", 3.0f);
  if (!(power > 0.0f && std::isfinite(power))) c.at("power").fail("a number above 0");
  require_integer(c, "start", start, -kMostInteger);
  require_integer(c, "end", end, -kMostInteger);
  if (end <= start) c.at("end").fail(fmt::format("a step after start ({})", start));
  return {[=](int64_t t, int64_t) {
            const float done = static_cast<float>(t - start) / static_cast<float>(end - start);
            return final + (init - final) * std::pow(1.0f - std::clamp(done, 0.0f, 1.0f), power);
          },
          c};
}

Schedule make_multi_step(const Config& c) {
  const float init = read_float(c, "init"), gamma = c.get<float>("gamma", 0.1f);
  auto milestones = c.required<std::vector<int64_t>>("milestones");
  for (const Config& step : c.at("milestones").items()) require_step(step);
  std::ranges::sort(milestones);
  return {[=](int64_t t, int64_t) {
            const auto passed = std::ranges::upper_bound(milestones, t) - milestones.begin();
            return init * std::pow(gamma, static_cast<float>(passed));
          },
          c};
}

}  // namespace

Schedule::Schedule(double value)
    : function_([v = static_cast<float>(value)](int64_t, int64_t) { return v; }),
      config_(value),
      constant_(value) {}

Schedule::Schedule(Function function, Config config)
    : function_(std::move(function)), config_(std::move(config)) {}

Schedule Schedule::from_config(const Config& config) {
  if (config.is_number()) return Schedule(config.as<double>());
  if (config.is_list()) return make_cycling(config);
  if (!config.is_map()) config.fail("a number, a list of numbers or a map with `type`");
  const Config type = config.at("type");
  return schedule_registry().find_any_case(type.as<std::string>(), type).make(config);
}

ScheduleRegistry& schedule_registry() {
  // Schedules are needed by every other room and by tests alone, so these are always there.
  static ScheduleRegistry registry = [] {
    ScheduleRegistry built_in("schedule");
    register_schedules(built_in);
    return built_in;
  }();
  return registry;
}

void register_schedules(ScheduleRegistry& r) {
  r.add("constant", "value: the same at every step",
        [](const Config& c) { return Schedule(c.required<double>("value")); });
  r.add("linear", "init + step * slope", make_linear);
  r.add("exp", "final + (init - final) * e^(step * gamma); final = 1", make_exp);
  r.add("power", "init * beta^step", make_power);
  r.add("cosine", "from init to minimum (= 0) over half_period steps along a cosine", make_cosine);
  r.add("cosine_once", "init until start (= 0), then as cosine, then minimum", make_cosine_once);
  r.add("cycling", "values: takes the next one at every update", make_cycling);
  r.add("polynomial", "from init at start to final at end, by (1 - progress)^power; power = 3",
        make_polynomial);
  r.add("multi_step", "init * gamma^(milestones passed); gamma = 0.1", make_multi_step);
}

UpdateSchedule UpdateSchedule::every(int64_t freq, int64_t start, std::optional<int64_t> stop) {
  if (freq < 1) throw ConfigError(fmt::format("freq: expected at least 1 step, found {}", freq));
  if (start < 0) {
    throw ConfigError(fmt::format("start: expected a step of at least 0, found {}", start));
  }
  UpdateSchedule schedule;
  schedule.freq_ = freq;
  schedule.start_ = start;
  schedule.stop_ = stop;
  return schedule;
}

UpdateSchedule UpdateSchedule::at_steps(std::vector<int64_t> steps) {
  std::ranges::sort(steps);
  if (!steps.empty() && steps.front() < 0) {
    throw ConfigError(fmt::format("steps: expected steps of at least 0, found {}", steps.front()));
  }
  UpdateSchedule schedule;
  schedule.steps_ = std::move(steps);
  return schedule;
}

UpdateSchedule UpdateSchedule::from_config(const Config& config) {
  if (config.is_null()) return {};
  if (!config.is_map()) config.fail("a map with `freq` (and `start`, `stop`) or with `steps`");
  if (config.has("steps")) {
    if (config.has("freq")) config.error("has both `freq` and `steps`; give one of them");
    for (const Config& step : config.at("steps").items()) require_step(step);
    return at_position(config.at("steps"),
                       [&] { return at_steps(config.required<std::vector<int64_t>>("steps")); });
  }
  const auto freq = require_at_least(config, "freq", config.required<int64_t>("freq"), 1);
  const auto start = require_at_least(config, "start", config.get<int64_t>("start", 0), 0);
  const auto stop = config.optional<int64_t>("stop");
  if (stop && *stop <= start) {
    config.get("stop").fail(fmt::format("a step after start ({})", start));
  }
  if (stop) require_at_least(config, "stop", *stop, 1);
  return every(freq, start, stop);
}

Config UpdateSchedule::to_config() const {
  if (steps_) return Config::map({{"steps", Config::from_value(*steps_)}});
  Config map = Config::map({{"freq", freq_}, {"start", start_}});
  if (stop_) map.set("stop", *stop_);
  return map;
}

bool UpdateSchedule::is_update(int64_t step) const {
  if (steps_) return std::ranges::binary_search(*steps_, step);
  return step >= start_ && (!stop_ || step < *stop_) && (step - start_) % freq_ == 0;
}

}  // namespace lacuna
