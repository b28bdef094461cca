#include "lacuna/optimizers/optimizer_registry.h"

#include <array>
#include <string>
#include <utility>

#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"

namespace lacuna {
namespace {

std::unique_ptr<Optimizer> make_sgd(const Config& config, std::vector<ParameterPtr> parameters) {
  SgdOptions options{.lr = Schedule::from_config(config.at("lr"))};
  read_optimizer_options(config, options);
  options.momentum = config.get<double>("momentum", options.momentum);
  options.dampening = config.get<double>("dampening", options.dampening);
  options.nesterov = config.get<bool>("nesterov", options.nesterov);
  return with_positions(config,
                        [&] { return std::make_unique<Sgd>(std::move(parameters), options); });
}

// A plain string is the age.
RegrownWeights read_regrown(const Config& config) {
  if (!config.has("regrown")) config.get<std::string>("regrown", "shared");
  const Config given = config.get("regrown");
  const Config age = given.is_map() ? given.get("age") : given;
  RegrownWeights regrown;
  if (given.is_map()) {
    given.get<std::string>("age", "shared");
    regrown.warmup = given.get<int64_t>("warmup", regrown.warmup);
  }
  const std::string word = age.is_null() ? "shared" : age.as<std::string>();
  if (word == "own") {
    regrown.age = RegrownWeights::Age::Own;
  } else if (word != "shared") {
    age.fail("'shared' or 'own'");
  }
  return regrown;
}

// Adam and AdamW read the same keys; their defaults differ.
template <class AdamType>
std::unique_ptr<Optimizer> make_adam(const Config& config, std::vector<ParameterPtr> parameters) {
  typename AdamType::Options options;
  read_optimizer_options(config, options);
  const Config betas = config.get("betas");
  const auto values =
      config.get<std::vector<double>>("betas", {options.betas[0], options.betas[1]});
  if (values.size() != 2) betas.fail("a list of two numbers");
  options.betas = {values[0], values[1]};
  options.eps = config.get<double>("eps", options.eps);
  options.regrown = read_regrown(config);
  return with_positions(config,
                        [&] { return std::make_unique<AdamType>(std::move(parameters), options); });
}

// The node at a dotted path; a missing one still knows its position.
Config node_at(const Config& config, std::string_view path) {
  const size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  const Config child = config.is_list() ? config.items().at(std::stoul(key)) : config.get(key);
  return dot == std::string_view::npos ? child : node_at(child, path.substr(dot + 1));
}

}  // namespace

namespace internal {

std::vector<ParameterGroup> read_parameter_groups(const Config& config) {
  std::vector<ParameterGroup> groups;
  const Config list = config.get("groups");
  if (list.is_null()) return groups;
  for (const Config& item : list.items()) {
    ParameterGroup group;
    const Config params = item.at("params");
    if (params.is_list()) {
      group.params = params.as<std::vector<std::string>>();
    } else {
      group.params = {params.as<std::string>()};
    }
    if (item.has("lr")) group.lr = Schedule::from_config(item.get("lr"));
    group.weight_decay = item.optional<double>("weight_decay");
    groups.push_back(std::move(group));
  }
  return groups;
}

void fail_at_option(const Config& config, const OptionError& error) {
  node_at(config, error.key()).error(error.problem());
}

}  // namespace internal

OptimizerRegistry& optimizer_registry() {
  static OptimizerRegistry registry = [] {
    OptimizerRegistry built_in("optimizer");
    register_optimizers(built_in);
    return built_in;
  }();
  return registry;
}

void register_optimizers(OptimizerRegistry& registry) {
  registry.add("sgd", "gradient descent with momentum, Nesterov's too", make_sgd);
  registry.add("adam", "Adam; weight decay is added to the gradient", make_adam<Adam>);
  registry.add("adamw", "Adam with decoupled weight decay", make_adam<AdamW>);
}

std::unique_ptr<Optimizer> make_optimizer(const Config& config,
                                          std::vector<ParameterPtr> parameters) {
  const Config type = config.at("type");
  return optimizer_registry()
      .find(type.as<std::string>(), type)
      .make(config, std::move(parameters));
}

}  // namespace lacuna
