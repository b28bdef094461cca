#include "lacuna/framework/train/parts/sparsity_defaults.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

// Here or below.
bool has_weight(Module& module, std::span<const ModuleRow> rows) {
  const std::vector<Module*> all = module.modules();
  return std::ranges::any_of(rows, [&](const ModuleRow& row) {
    return row.weight != nullptr && std::ranges::find(all, row.module) != all.end();
  });
}

bool lacks_frequency(const Config& update) {
  return update.is_map() && update.peek("freq").is_null() && update.peek("steps").is_null();
}

// An entry's algorithm, made to be asked, and which keys it reads.
struct Probe {
  std::unique_ptr<SparsityAlgorithm> algorithm;
  bool takes_update = false, takes_filter = false, takes_rounding = false;
};

// Null where the entry is wrong, which is reported where the run's algorithm is made.
std::optional<Probe> probe(const Config& entry, uint64_t seed) {
  Config tried = entry.clone();
  Config update = tried.peek("update");
  if (update.is_null()) tried.set("update", Config::map({{"freq", 1}}));
  if (lacks_frequency(update)) update.set("freq", 1);
  for (const char* key : {"drop_fraction", "sparsity", "schedule"}) {
    complete_schedule(tried.peek(key), 0, 1);
  }
  if (tried.peek("param_filter").is_null()) tried.set("param_filter", "default");
  try {
    Probe made{.algorithm = configure(tried, seed)};
    made.takes_update = tried.peek("update").is_read();
    made.takes_filter = tried.peek("param_filter").is_read();
    made.takes_rounding = entry.peek("round_to").is_null() && tried.has("round_to");
    return made;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Completion {
 public:
  explicit Completion(const SparsityContext& context) : context_(context) {
    if (const ParameterPtr output = output_weight(*context.model, context.rows)) {
      output_ = output->name();
    }
  }

  void complete_section(Config section) {
    if (section.is_list()) {
      for (const auto& [index, entry] : section.children()) complete(entry, context_.length);
    } else if (section.is_map() && !section.peek("phases").is_null()) {
      complete_phases(section.peek("phases"));
    } else if (section.is_map()) {
      complete(section, context_.length);
    }
  }

  std::string in_words() const { return join(words_, "; "); }

 private:
  // The steps of a phase count from its beginning.
  void complete_phases(const Config& phases) {
    int64_t begin = 0;
    for (const auto& [index, phase] : phases.children()) {
      if (!phase.is_map()) continue;
      Config until = Config::map({{"until", phase.peek("until")}});
      resolve_positions(until, context_.length);
      const Config end = until.peek("until");
      if (!end.is_null()) Config(phase).set("until", end);
      const int64_t steps = end.is_number() ? end.as<int64_t>() : context_.length.steps;
      complete(phase, {.steps = std::max<int64_t>(steps - begin, 1),
                       .steps_per_epoch = context_.length.steps_per_epoch});
      begin = steps;
    }
  }

  void complete(Config entry, const RunLength& length) {
    if (!entry.is_map()) return;
    resolve_positions(entry, length);
    complete_budget(entry);
    std::optional<Probe> made = probe(entry, context_.seed);
    if (!made) made = make_gradual(entry);
    if (!made) return;
    const auto* dynamic = dynamic_cast<const DynamicSparsityAlgorithm*>(&stood_for(*made));
    if (dynamic != nullptr && made->takes_update) complete_updates(entry, *dynamic, length);
    complete_schedules(entry, length);
    if (made->takes_filter && context_.is_fresh) complete_filter(entry);
    if (made->takes_rounding && context_.is_fresh) entry.set("round_to", "auto");
  }

  // An algorithm with a single part may stand for that.
  static const SparsityAlgorithm& stood_for(const Probe& made) {
    const SparsityAlgorithm& algorithm = *made.algorithm;
    return algorithm.parts().size() == 1 ? *algorithm.parts().front() : algorithm;
  }

  // What `to` removes, as a schedule.
  void complete_budget(Config entry) {
    const Config to = entry.peek("to");
    if (!to.is_map() || to.entries().size() != 1 || !entry.peek("sparsity").is_null()) return;
    const Config left = to.entries().front().second;
    if (!left.is_number() || !(left.as<double>() > 0.0 && left.as<double>() < 1.0)) return;
    const double removed = std::round(1e9 * (1.0 - left.as<double>())) / 1e9;
    entry.set("sparsity", Config::map({{"type", "polynomial"}, {"init", 0.0}, {"final", removed}}));
    words_.push_back(fmt::format("{}: cubic from 0 to {}", entry.peek("sparsity").path(),
                                 Config(removed).text()));
  }

  // A constant sparsity that the algorithm refuses, as a schedule, if it takes that.
  std::optional<Probe> make_gradual(Config entry) {
    const Config given = entry.peek("sparsity");
    if (!given.is_number() || !(given.as<double>() >= 0.0 && given.as<double>() < 1.0)) {
      return std::nullopt;
    }
    Config without = entry.clone();
    without.erase("sparsity");
    // Where the pattern alone is enough, it is the pattern that refuses the number.
    if (!entry.peek("pattern").is_null() && probe(without, context_.seed)) return std::nullopt;
    Config cubic = Config::map({{"type", "polynomial"}, {"init", 0.0}, {"final", given.clone()}});
    cubic.set_position(given.position());
    Config tried = entry.clone();
    tried.set("sparsity", cubic.clone());
    std::optional<Probe> made = probe(tried, context_.seed);
    if (!made) return made;
    entry.set("sparsity", cubic);
    words_.push_back(
        fmt::format("{}: cubic from 0 to {}", entry.peek("sparsity").path(), given.text()));
    return made;
  }

  void complete_updates(Config entry, const DynamicSparsityAlgorithm& algorithm,
                        const RunLength& length) {
    const Config given = entry.peek("update");
    const Config chosen = algorithm.default_updates(length.steps).to_config();
    if (given.is_null() && context_.is_fresh) {
      entry.set("update", chosen);
      const Config update = entry.peek("update");
      words_.push_back(update.path() + ": " + in_words(chosen));
    } else if (lacks_frequency(given)) {
      Config(given).set("freq", chosen.peek("freq").clone());
    }
  }

  static std::string in_words(const Config& update) {
    const Config stop = update.peek("stop");
    const std::string freq = update.peek("freq").text();
    if (update.peek("freq").is_null()) return "at the steps that the algorithm names";
    return fmt::format("every {}{}", freq == "1" ? "step" : freq + " steps",
                       stop.is_null() ? "" : " until step " + stop.text());
  }

  // A sparsity reaches its end at the last update; the fraction that is dropped falls until the
  // updates stop.
  void complete_schedules(const Config& entry, const RunLength& length) {
    const Config update = entry.peek("update");
    const Config start = update.peek("start"), stop = update.peek("stop");
    const int64_t begin = start.is_number() ? start.as<int64_t>() : 0;
    int64_t end = stop.is_number() ? std::min(stop.as<int64_t>(), length.steps) : length.steps;
    complete_schedule(entry.peek("drop_fraction"), begin, end);
    if (!stop.is_number()) end = (3 * length.steps + 2) / 4;
    for (const char* key : {"sparsity", "schedule"}) {
      complete_schedule(entry.peek(key), begin, last_update(update, end));
    }
  }

  static int64_t last_update(const Config& update, int64_t end) {
    try {
      const UpdateSchedule schedule = UpdateSchedule::from_config(update.clone());
      for (int64_t step = end; step > 0; --step) {
        if (schedule.is_update(step)) return step;
      }
    } catch (const ConfigError&) {  // reported where the algorithm is made
    }
    return end;
  }

  void complete_filter(Config entry) {
    if (!entry.peek("param_filter").is_null()) return;
    if (output_.empty()) {
      entry.set("param_filter", "default");
      return;
    }
    require_others(entry);
    entry.set("param_filter", Config::map({{"except", Config::list({output_})}}));
    const std::string word = fmt::format("the output layer ({}) stays dense", output_);
    if (std::ranges::find(words_, word) == words_.end()) words_.push_back(word);
  }

  void require_others(const Config& entry) const {
    const std::vector<ParameterPtr> all = context_.model->parameters();
    const bool has_others = std::ranges::any_of(all, [&](const ParameterPtr& parameter) {
      return parameter->name() != output_ && ParameterFilter().matches(*parameter);
    });
    if (has_others) return;
    entry.error(fmt::format(
        "the output layer '{}' is all that could be sparse, and it stays dense unless it is named: "
        "give param_filter: {}",
        output_, output_));
  }

  const SparsityContext& context_;
  std::string output_;  // the name of its weight; empty: none
  std::vector<std::string> words_;
};

}  // namespace

ParameterPtr output_weight(const Sequential& model, std::span<const ModuleRow> rows) {
  const std::span<Module* const> chain = model.chain().modules();
  for (auto child = chain.rbegin(); child != chain.rend(); ++child) {
    if (!has_weight(**child, rows)) continue;
    if (const auto* inner = dynamic_cast<const Sequential*>(*child)) {
      return output_weight(*inner, rows);
    }
    for (const ModuleRow& row : rows) {
      if (row.module != *child || row.weight == nullptr) continue;
      const std::vector<ParameterPtr> own = (*child)->parameters();
      const bool is_own = std::ranges::find(own, row.weight) != own.end();
      return is_own && ParameterFilter().matches(*row.weight) ? row.weight : nullptr;
    }
    return nullptr;
  }
  return nullptr;
}

std::string complete_sparsity(Config& config, const SparsityContext& context) {
  const Config given = config.peek("sparsity");
  if (given.is_number()) {
    const auto sparsity = given.as<double>();
    if (!(sparsity >= 0.0 && sparsity < 1.0)) return "";  // refused where it is read
    Config entry = Config::map({{"algorithm", "static"}, {"sparsity", given.clone()}});
    entry.set_position(given.position());
    config.set("sparsity", entry);
  }
  Completion completion(context);
  completion.complete_section(config.peek("sparsity"));
  resolve_positions(config.peek("sparsifiers"), context.length);
  return completion.in_words();
}

std::string why_dense(const Experiment& e, const Parameter& parameter) {
  if (e.sparsity == nullptr || parameter.shape().rank() < 2) return "";
  const std::vector<ParameterPtr> sparse = e.sparsity->parameters();
  if (std::ranges::any_of(sparse, [&](const ParameterPtr& p) { return p.get() == &parameter; }))
    return "";
  if (!parameter.trainable) return "frozen";
  const std::string reason = ParameterFilter::default_reason(parameter);
  if (!reason.empty()) return reason;
  const ParameterPtr output = output_weight(*e.model, e.rows);
  return output.get() == &parameter ? "the output layer" : "param_filter leaves it out";
}

}  // namespace lacuna
