#include "lacuna/sparsity/configure.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/sparsity/acdc.h"
#include "lacuna/sparsity/dense.h"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/grow_by_choice.h"
#include "lacuna/sparsity/one_shot_pruning.h"
#include "lacuna/sparsity/options/group_count.hpp"
#include "lacuna/sparsity/phases.h"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/semi_sparse.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/snfs.h"
#include "lacuna/sparsity/snip.h"
#include "lacuna/sparsity/srigl.h"
#include "lacuna/sparsity/static.h"
#include "lacuna/sparsity/straight_through.h"

namespace lacuna {
namespace {

bool has_target(const Config& entry) {
  const auto has = [&](const char* key) { return entry.has(key); };
  return std::ranges::any_of(std::array{"sparsity", "schedule", "density", "fan_in"}, has);
}

// Refuses an entry that gives no target: nothing would be pruned, without a word. A key that is
// unknown, perhaps the target's misspelt, is reported as such.
void require_target(const Config& entry, std::string_view type) {
  if (has_target(entry)) return;
  if (PatternShape::from_config(entry.get("pattern")).is_nm()) return;  // N:M sets the sparsity
  entry.require_all_read();
  entry.error(std::string(type) + " needs `sparsity` (or `density`, or `fan_in`)");
}

using MakeAlgorithm = decltype(AlgorithmType::make);

// The factory of an algorithm that aims at a target.
MakeAlgorithm aiming(MakeAlgorithm make) {
  return [make = std::move(make)](const Config& entry, uint64_t seed) {
    auto algorithm = make(entry, seed);  // reads the entry's keys
    require_target(entry, algorithm->type());
    return algorithm;
  };
}

// For algorithms that refuse a constant sparsity, as no target is one: a key that is unknown,
// perhaps the target's misspelt, is reported first.
template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_gradual(const Config& entry, uint64_t seed) {
  if (!has_target(entry)) {
    dynamic_options(entry, seed);  // reads the entry's keys
    entry.require_all_read();
  }
  return make_dynamic<Algorithm>(entry, seed);
}

std::unique_ptr<SparsityAlgorithm> make_static(const Config& entry, uint64_t seed) {
  auto algorithm = make_algorithm<Static>(entry, seed);
  const std::string init_method = entry.get("init_method").text();
  if (init_method != "from_zeros" && init_method != "inherit") {
    require_target(entry, algorithm->type());
  }
  return algorithm;
}

std::unique_ptr<SparsityAlgorithm> make_dense(const Config& entry, uint64_t) {
  return std::make_unique<Dense>(ParameterFilter::from_config(entry.get("param_filter")),
                                 LayoutOption::from_config(entry));
}

std::unique_ptr<SparsityAlgorithm> make_snip(const Config& entry, uint64_t seed) {
  Snip::Options options{.common = SparsityOptions::from_config(entry, seed)};
  const bool per_layer = entry.has("distribution") || divides(options.common.groups) ||
                         options.common.pattern.is_structured();
  const auto scope = entry.get<std::string>("scope", per_layer ? "layer" : "global");
  if (scope != "global" && scope != "layer") entry.get("scope").fail("'global' or 'layer'");
  options.global = scope == "global";
  if (options.global && per_layer) {
    entry.get("scope").error(
        "a global competition cannot be combined with distribution, groups or a pattern");
  }
  return std::make_unique<Snip>(std::move(options));
}

std::unique_ptr<SparsityAlgorithm> make_snfs(const Config& entry, uint64_t seed) {
  Snfs::Options options{.common = drop_grow_options(entry, seed)};
  options.momentum =
      require_range(entry, "momentum", entry.get<double>("momentum", 0.9), 0.0, 0.999999);
  options.redistribute = entry.get<bool>(
      "redistribute", !divides(options.common.groups) && !options.common.pattern.is_structured());
  return std::make_unique<Snfs>(std::move(options));
}

// `random`, `gradient` or `{mixed: share}`. *Returns* the share that grows by gradient.
double read_growth(const Config& entry) {
  if (entry.peek("grow").is_null()) entry.get<std::string>("grow", "random");  // as written out
  const Config grow = entry.at("grow");
  if (grow.is_map()) {
    const auto share = grow.required<double>("mixed");
    return require_range(grow, "mixed", share, 0.0, 1.0);
  }
  const std::string word = grow.is_scalar() ? grow.text() : "";
  if (word != "random" && word != "gradient") {
    grow.fail("'random', 'gradient' or {mixed: the share by gradient}");
  }
  return grow.as<std::string>() == "gradient" ? 1.0 : 0.0;
}

std::unique_ptr<SparsityAlgorithm> make_grow_by_choice(const Config& entry, uint64_t seed) {
  GrowByChoice::Options options{.common = drop_grow_options(entry, seed)};
  options.gradient_share = read_growth(entry);
  return std::make_unique<GrowByChoice>(std::move(options));
}

// Of set and rigl, which are `dynamic` with one growth each.
template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_with_own_growth(const Config& entry, uint64_t seed) {
  auto algorithm = make_drop_grow<Algorithm>(entry, seed);
  if (const Config given = entry.peek("grow"); !given.is_null()) {
    given.error(std::string(algorithm->type()) +
                " has its own growth rule; to choose one, use algorithm: dynamic");
  }
  return algorithm;
}

std::unique_ptr<SparsityAlgorithm> make_srigl(const Config& entry, uint64_t seed) {
  SRigL::Options options{.common = drop_grow_options(entry, seed)};
  options.min_salient = require_range(
      entry, "min_salient", entry.get<double>("min_salient", options.min_salient), 0.0, 1.0);
  return std::make_unique<SRigL>(std::move(options));
}

// What would have no effect: the mask is the largest part of the master, parameter by parameter.
// Not asked for, so that no message about an unknown key names these as known ones.
void refuse_unused(const Config& entry) {
  for (const char* key :
       {"init_method", "distribution", "balance_in_groups", "balance_out_groups"}) {
    if (const Config given = entry.peek(key); !given.is_null()) {
      given.error("semi_sparse takes no `" + std::string(key) +
                  "`: it uses the largest part of each parameter's master weight");
    }
  }
}

std::unique_ptr<SparsityAlgorithm> make_semi_sparse(const Config& entry, uint64_t seed) {
  refuse_unused(entry);
  const SemiSparseOptions options = SemiSparseOptions::from_config(entry, seed);
  if (!options.pattern.is_structured()) entry.require_all_read();  // perhaps `pattern` misspelt
  if (!options.pattern.is_nm() && options.pattern.is_structured())
    require_target(entry, "semi_sparse");
  return std::make_unique<SemiSparse>(options);
}

MakeAlgorithm make_one_shot(OneShotMethod method) {
  return aiming([method](const Config& entry, uint64_t seed) {
    return std::make_unique<OneShotPruning>(
        OneShotPruningOptions::from_config(entry, method, seed));
  });
}

std::function<std::string(const std::string& name)>& algorithm_lookup() {
  static std::function<std::string(const std::string& name)> lookup;
  return lookup;
}

std::unique_ptr<SparsityAlgorithm> configure_entry(const Config& entry, uint64_t seed) {
  if (!entry.is_map()) entry.fail("a map with `algorithm` and its keys");
  if (entry.has("algorithm") && entry.has("type")) {
    entry.get("type").error("`algorithm` and `type` mean the same; give one of them");
  }
  const Config named = entry.has("type") ? entry.get("type") : entry.get("algorithm");
  std::string name =
      named.is_null() ? entry.get<std::string>("algorithm", "static") : named.as<std::string>();
  const bool is_known =
      algorithm_registry().contains(name) || algorithm_registry().contains(to_lower(name));
  if (!is_known && algorithm_lookup()) name = algorithm_lookup()(name);
  const AlgorithmType& algorithm =
      algorithm_registry().find_any_case(name, named.is_null() ? entry : named).make;
  return at_position(entry, [&] { return algorithm.make(entry, seed); });
}

}  // namespace

DynamicOptions dynamic_options(const Config& entry, uint64_t seed) {
  DynamicOptions options = SparsityOptions::from_config(entry, seed);
  options.update = UpdateSchedule::from_config(entry.get("update"));
  return options;
}

DynamicOptions drop_grow_options(const Config& entry, uint64_t seed) {
  DynamicOptions options = dynamic_options(entry, seed);
  const Config fraction = entry.get("drop_fraction");
  if (fraction.is_number()) {
    require_range(entry, "drop_fraction", fraction.as<double>(), 0.0, 1.0);
  }
  options.drop_fraction = fraction.is_null() ? Schedule(entry.get<double>("drop_fraction", 0.3))
                                             : Schedule::from_config(fraction);
  options.keep_alive = entry.get("keep_alive", false);
  return options;
}

AlgorithmRegistry& algorithm_registry() {
  static AlgorithmRegistry registry("sparsity algorithm");
  return registry;
}

void set_algorithm_lookup(std::function<std::string(const std::string& name)> lookup) {
  algorithm_lookup() = std::move(lookup);
}

void register_algorithms(AlgorithmRegistry& r) {
  const auto add = [&](const char* name, const char* help, MakeAlgorithm make, const char* when,
                       bool calibrates = false) {
    AlgorithmType type{std::move(make), when};
    if (calibrates) type.calibrates = [](const Config&) { return true; };
    r.add(name, help, std::move(type));
  };
  add("static", "one mask, made by init_method, for the whole run", make_static,
      "for the fastest training, and as the baseline of the others");
  add("dense", "no sparsity; for a phase", make_dense, "as a phase before or after sparse ones");
  add("gmp", "gradual magnitude pruning: keeps the largest |w|, at a rising sparsity",
      make_gradual<Gmp>,
      "for the best accuracy at a high sparsity; it begins dense, and is slower at first");
  add("saliency", "gradual pruning by |w * gradient|", make_gradual<Saliency>,
      "instead of gmp, if gradients are more informative than magnitudes; gmp did better here");
  add("ste", "straight-through: the largest |w| of a dense master weight, chosen at each update",
      aiming(make_dynamic<StraightThrough>),
      "where weights that were pruned should come back; it takes a dense model's memory");
  add("semi_sparse", "uses an N:M or block pattern of a dense master weight, chosen at every step",
      make_semi_sparse, "for 2:4 with nearly dense accuracy, as GPUs run it");
  add("acdc", "alternates sparse and dense training", aiming(make_dynamic<AcDc>),
      "for a dense and a sparse model of one run");
  add("set", "drops the smallest |w|, regrows at random", aiming(make_with_own_growth<Set>),
      "for text, and for networks whose dense gradient does not fit memory");
  add("rigl", "drops the smallest |w|, regrows where |dense gradient| is largest",
      aiming(make_with_own_growth<RigL>),
      "first, except for text: sparse from the first step to the last; on images more "
      "accurate than static");
  add("dynamic", "drops the smallest |w|, grows at random, by |dense gradient|, or by both",
      aiming(make_grow_by_choice), "to compare the growth of set and rigl, or to mix them");
  add("srigl", "rigl with a constant fan-in; rows with few salient weights are ablated",
      aiming(make_srigl), "where rows should be equally full, or go as a whole");
  add("snfs", "drops the smallest |w|, regrows and redistributes by |momentum|", aiming(make_snfs),
      "where parameters should share out the nonzeros by themselves");
  add("magnitude", "prunes once by |w|", make_one_shot(OneShotMethod::Magnitude),
      "on a trained model without data, or before much training", true);
  add("wanda", "prunes once, by |w| times the norm of its input",
      make_one_shot(OneShotMethod::Wanda), "on a trained model that is too large for the others",
      true);
  add("sparsegpt", "prunes once, column by column; later columns compensate",
      make_one_shot(OneShotMethod::SparseGpt), "on a trained model, where admm takes too long",
      true);
  add("admm", "prunes once, and alternates between updates of weights and mask (ADMM)",
      make_one_shot(OneShotMethod::Admm),
      "on a trained model, with least_squares: true, for the least loss of accuracy", true);
  add("snip", "prunes once, at the first step, by |w * gradient|", aiming(make_snip),
      "for masks that fit the data and stay fixed from the first step");
}

namespace {

// `phases: [{until: 1000, algorithm: …}, {algorithm: dense}]`.
std::unique_ptr<SparsityAlgorithm> configure_phases(const Config& config, uint64_t seed) {
  std::vector<Phase> phases;
  for (const Config& entry : config.at("phases").items()) {
    if (!entry.is_map()) entry.fail("a map with `algorithm` and its keys");
    if (config.has("layout")) {  // the plan's is its phases' default
      entry.get<std::string>("layout", config.required<std::string>("layout"));
    }
    const auto until = entry.optional<int64_t>("until");
    if (until) require_at_least(entry, "until", *until, 1);
    // Each phase draws from a stream of its own: its steps count from its beginning.
    const uint64_t own = CounterRng(seed, "phase", phases.size()).block(0)[0];
    phases.push_back({configure_entry(entry, phases.empty() ? seed : own), until});
  }
  return at_position(config, [&]() -> std::unique_ptr<SparsityAlgorithm> {
    return std::make_unique<Phases>(std::move(phases));
  });
}

}  // namespace

std::unique_ptr<SparsityAlgorithm> configure(const Config& config, uint64_t seed) {
  if (config.is_null()) return nullptr;
  if (config.is_number()) {
    const auto sparsity = config.as<double>();
    if (sparsity > 2.0 && sparsity < 100.0) {
      config.fail(
          fmt::format("a sparsity in [0, 1), as {:.6g} for {} %", sparsity / 100.0, config.text()));
    }
    if (!(sparsity >= 0.0 && sparsity < 1.0)) config.fail("a sparsity in [0, 1)");
    return std::make_unique<Static>(SparsityOptions{.sparsity = sparsity, .seed = seed});
  }
  if (config.is_map() && config.has("phases")) return configure_phases(config, seed);
  if (config.is_map()) return configure_entry(config, seed);
  if (!config.is_list()) config.fail("a number, a map or a list of maps");
  auto group = std::make_unique<Group>();
  for (const Config& entry : config.items()) {
    // First, and not as an argument next to the filter: it reports what is wrong with an entry.
    auto algorithm = configure_entry(entry, seed);
    group->add(ParameterFilter::from_config(entry.get("param_filter")), std::move(algorithm));
  }
  if (group->algorithms().empty()) config.fail("at least one entry");
  return group;
}

}  // namespace lacuna
