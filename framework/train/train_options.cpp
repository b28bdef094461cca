#include "lacuna/framework/train/train_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/familiar_names.hpp"
#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {

int64_t Period::in_steps(int64_t steps_per_epoch) const {
  const int64_t unit = in_epochs ? steps_per_epoch : 1;
  return count > kMaxSteps / unit ? kMaxSteps : count * unit;
}

Period Period::from_config(const Config& map, const char* key, Period fallback) {
  const Config value = map.get(key);
  constexpr const char* expected = "a number of steps of at least 1, '500 steps' or '2 epochs'";
  if (value.is_null()) {
    map.get<std::string>(key, fallback.to_string());
    return fallback;
  }
  if (!value.is_scalar()) value.fail(expected);
  if (value.is_number()) {
    const auto steps = value.as<double>();
    if (!(steps >= 1) || !std::isfinite(steps) || steps != std::floor(steps)) value.fail(expected);
    return Period::steps(static_cast<int64_t>(std::min(steps, static_cast<double>(kMaxSteps))));
  }
  const std::string text = value.as<std::string>();
  Period period;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), period.count);
  const std::string unit(end, text.data() + text.size());
  period.in_epochs = unit == " epoch" || unit == " epochs";
  const bool in_steps = unit == " step" || unit == " steps";
  if (error != std::errc() || period.count < 1 || (!period.in_epochs && !in_steps)) {
    value.fail(expected);
  }
  return period;
}

std::string Period::to_string() const {
  return fmt::format("{} {}{}", count, in_epochs ? "epoch" : "step", count == 1 ? "" : "s");
}

namespace {

// Beyond it the system may refuse a thread, which ends the process.
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kShardsOfJob = 8, kMostShards = 4096;
constexpr int64_t kMaxBatch = (int64_t{1} << 31) - 1;

int64_t at_least(const Config& map, const char* key, int64_t fallback, int64_t low) {
  return require_at_least(map, key, map.get<int64_t>(key, fallback), low);
}

int64_t in_range(const Config& map, const char* key, int64_t fallback, int64_t low, int64_t high) {
  const auto value = map.get<int64_t>(key, fallback);
  if (value < low || value > high) {
    map.get(key).fail(fmt::format("an integer from {} to {}", low, high));
  }
  return value;
}

Period read_length(const Config& train) {
  if (train.has("seconds")) {
    train.get("seconds").error(
        "only `lacuna train` and `lacuna plan` measure how many steps fit into a time; give "
        "train.steps or train.epochs");
  }
  if (train.has("epochs") && train.has("steps")) {
    train.get("steps").error("`epochs` and `steps` are both given; give one of them");
  }
  if (train.has("steps")) return Period::steps(at_least(train, "steps", 0, 1));
  return Period::epochs(at_least(train, "epochs", TrainOptions().length.count, 1));
}

// Early stopping goes back to the best, which is kept for it.
CheckpointOptions read_checkpoint_options(const Config& config, bool stops_early) {
  CheckpointOptions options;
  options.every = Period::from_config(config, "every", options.every);
  options.keep_last = at_least(config, "keep_last", options.keep_last, 1);
  options.keep_best = config.get<bool>("keep_best", stops_early);
  return options;
}

// A decay alone, or a map.
WeightAverageOptions read_ema(const Config& config) {
  WeightAverageOptions options;
  const Config decay = config.is_map() ? config.at("decay") : config;
  options.decay = decay.as<double>();
  if (!(options.decay >= 0.0 && options.decay < 1.0)) decay.fail("a number in [0, 1)");
  if (config.is_map()) options.start = at_least(config, "start", options.start, 0);
  return options;
}

// Values are float32: what bf16 would gain is in docs/guides/quantization.md.
void require_float32(const Config& train) {
  const auto precision = train.get<std::string>("precision", "float32");
  if (precision == "float32") return;
  const Config given = train.get("precision");
  if (precision == "bf16" || precision == "bfloat16") {
    given.error(
        "lacuna does not train in bf16: whole steps at 90 % sparsity would be at most 1.15 to 1.54 "
        "times faster; leave it out (docs/guides/quantization.md#training-in-bf16)");
  }
  const std::vector<std::string> names = {"float32"};
  given.error("unknown precision '" + printable(precision) + "'; " +
              suggest_name(precision, names));
}

SampleOptions read_sample(const Config& config) {
  if (!config.is_map()) config.fail("a map with prompt and tokens");
  SampleOptions options{.prompt = config.required<std::string>("prompt")};
  if (options.prompt.empty()) config.at("prompt").fail("a text that is not empty");
  options.tokens = in_range(config, "tokens", options.tokens, 1, 10'000);
  return options;
}

}  // namespace

TrainOptions TrainOptions::from_config(const Config& train) {
  if (!train.is_map() && !train.is_null()) train.fail("a map");
  TrainOptions o;
  o.length = read_length(train);
  o.batch_size = in_range(train, "batch_size", o.batch_size, 1, kMaxBatch);
  o.shards = in_range(train, "shards", is_launched() ? kShardsOfJob : 0, 0, kMostShards);
  const auto reduction = train.get<std::string>("reduction", "exact");
  if (reduction != "exact" && reduction != "fast") {
    train.get("reduction").fail("'exact' or 'fast'");
  }
  o.reduction = reduction == "fast" ? Reduction::Fast : Reduction::Exact;
  const auto norms = train.get<std::string>("batch_norm", "synchronized");
  if (norms != "synchronized" && norms != "local") {
    train.get("batch_norm").fail("'synchronized' or 'local'");
  }
  o.batch_norm = norms == "local" ? NormBatch::Local : NormBatch::Synchronized;
  o.accumulate = in_range(train, "accumulate", o.accumulate, 1, kMaxBatch);
  o.drop_last = train.get<bool>("drop_last", o.drop_last);
  o.seed = read_seed(train);
  o.threads = static_cast<int>(in_range(train, "threads", o.threads, 0, kMaxThreads));
  o.prefetch = static_cast<int>(in_range(train, "prefetch", o.prefetch, 0, 1024));
  o.eval_batch_size = in_range(train, "eval_batch_size", o.eval_batch_size, 1, kMaxBatch);
  o.eval_every = Period::from_config(train, "eval_every", o.eval_every);
  o.log_every = Period::from_config(train, "log_every", o.log_every);
  const auto fallback = train.get<std::string>("layout_fallback", "dense");
  if (fallback != "dense" && fallback != "error") {
    train.get("layout_fallback").fail("'dense' or 'error'");
  }
  o.layout_fallback = fallback == "error" ? FallbackPolicy::Error : FallbackPolicy::Dense;
  require_float32(train);
  o.tensorboard = train.get<bool>("tensorboard", o.tensorboard);
  o.trace_autograd = train.get<bool>("trace_autograd", o.trace_autograd);
  if (!train.has("checkpoint")) Config(train).set("checkpoint", Config::map());
  o.checkpoint = read_checkpoint_options(train.get("checkpoint"), train.has("early_stopping"));
  if (train.has("early_stopping")) {
    const Config stopping = train.get("early_stopping");
    EarlyStoppingOptions early;
    early.patience = at_least(stopping, "patience", early.patience, 1);
    early.min_delta = require_range(stopping, "min_delta",
                                    stopping.get<double>("min_delta", early.min_delta), 0.0, 1e30);
    o.early_stopping = early;
  }
  if (train.has("sample")) o.sample = read_sample(train.get("sample"));
  if (train.has("ema")) o.ema = read_ema(train.get("ema"));
  return o;
}

void require_known_sections(const Config& config) {
  static const std::vector<std::string> sections = {
      "model",           "data",      "loss",
      "optimizer",       "sparsity",  "sparsifiers",
      "parametrization", "csr_up_to", "convolution_algorithms",
      "train",           "run_dir",   "quantize"};
  if (!config.is_map()) config.fail("a map with model, data, optimizer and train");
  for (const auto& [key, value] : config.children()) {  // not read yet
    if (std::ranges::find(sections, key) == sections.end()) {
      value.error("unknown section '" + key + "'; " + suggest_key(key, "", sections));
    }
  }
}

void require_known_keys(const Config& config, uint64_t seed) {
  const Config tried = config.clone();  // attempts here do not mark keys that are read later
  const auto require = [&](const char* section, const auto& read) {
    const Config node = tried.get(section);
    if (!node.is_map()) return;
    try {
      read(node);
    } catch (const Error& error) {
      if (std::string_view(error.what()).find(": unknown key '") != std::string_view::npos) throw;
      return;
    }
    node.require_all_read();
  };
  require("optimizer", [](const Config& node) {
    const auto weight = std::make_shared<Parameter>(Shape{1}, Initializer::constant(0.0));
    make_optimizer(node, {weight});
  });
  require("sparsity", [&](const Config& node) { configure(node, seed); });
}

namespace {

// Of the optimizer, and of its groups that have their own.
std::vector<Config> rates_of(const Config& optimizer) {
  std::vector<Config> all = {optimizer.get("lr")};
  const Config groups = optimizer.get("groups");
  if (!groups.is_null()) {
    for (const Config& group : groups.items()) all.push_back(group.get("lr"));
  }
  std::erase_if(all, [](const Config& rate) { return rate.is_null(); });
  return all;
}

}  // namespace

void require_learning_rates(const Config& optimizer, int64_t steps) {
  constexpr int64_t kMost = 10000;
  const int64_t stride = steps / kMost + 1, last = steps - 1;
  for (const Config& node : rates_of(optimizer)) {
    const Schedule schedule = Schedule::from_config(node);
    for (int64_t at = 0; at < steps + stride - 1; at += stride) {
      const int64_t step = std::min(at, last);
      const double rate = double{schedule.at(step, step)};
      if (rate >= 0.0 && std::isfinite(rate)) continue;
      node.error(
          fmt::format("the learning rate is {} at step {}; expected a finite number of at least 0",
                      rate, step));
    }
  }
}

// A rate that rises during the whole run may be intended; one that is still almost zero at its end
// trains nothing.
void warn_about_warmup(const Config& optimizer, int64_t steps) {
  const Config key = optimizer.get("warmup");
  if (key.is_null()) return;
  const auto warmup = key.as<int64_t>();
  if (warmup > 0 && (warmup - 1) / 1000 >= steps) {
    key.error(fmt::format(
        "the learning rate rises over {} steps, and the run ends after {}: it would hardly train",
        warmup, steps));
  }
  if (warmup <= steps) return;
  log_warning(
      fmt::format("optimizer.warmup: the learning rate rises over {} steps, and the run "
                  "ends after {}: it never reaches its full value",
                  warmup, steps));
}

void warn_about_rates_of_zero(const Config& optimizer, int64_t from, int64_t steps) {
  std::vector<Schedule> schedules;
  for (const Config& node : rates_of(optimizer)) schedules.push_back(Schedule::from_config(node));
  const auto is_zero = [&](int64_t step) {
    return std::ranges::all_of(schedules,
                               [&](const Schedule& s) { return s.at(step, step) == 0.0f; });
  };
  if (std::ranges::all_of(schedules, &Schedule::is_constant)) return;  // 0 is what was asked for
  // Of a very long run, one step of each stride is looked at, at a place that no period matches.
  const int64_t stride = steps / 1'000'000 + 1;
  uint32_t place = 0;
  const auto next = [&] { return static_cast<int64_t>((place += 0x9E3779B9u) >> 8) % stride; };
  int64_t first = steps;
  while (first - stride >= from && is_zero(first - 1 - next())) first -= stride;
  while (first > from && is_zero(first - 1)) --first;
  const bool is_long = first == from || 10 * (steps - first) >= steps;
  if (!is_long || steps - first < 2) return;
  log_warning(
      fmt::format("optimizer.lr: the learning rate is 0 from step {} to the end of the run, step "
                  "{}: these steps train nothing; give a longer schedule, or train for less",
                  first, steps));
}

void warn_about_average(const TrainOptions& train, int64_t steps) {
  if (!train.ema || train.ema->start < steps) return;
  log_warning(
      fmt::format("train.ema: the average begins at step {}, and the run ends after {}: the "
                  "weights themselves are evaluated",
                  train.ema->start, steps));
}

bool warn_about_greedy_search(const Config& config) {
  if (config.is_list()) return std::ranges::any_of(config.items(), warn_about_greedy_search);
  if (!config.is_map()) return false;
  const Config search = config.get("search");
  if (config.has("transposable") && search.is_scalar() && to_lower(search.text()) == "greedy") {
    log_warning(search.where() +
                ": the greedy search no longer exists; masks are chosen by the exact one");
    return true;
  }
  return std::ranges::any_of(config.entries(), [](const Config::Entry& entry) {
    return warn_about_greedy_search(entry.second);
  });
}

}  // namespace lacuna
