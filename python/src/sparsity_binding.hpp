// What the two sources about sparsity share: protected members of algorithms, and an algorithm of
// C++ that stands for one of Python.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "callables.hpp"
#include "handles.hpp"
#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/dynamic.h"
#include "parameter_arrays.hpp"

namespace lacuna::python {

/// Protected members of algorithms, for the functions that Python's subclasses call.
struct AlgorithmAccess : SparsityAlgorithm {
  using SparsityAlgorithm::count_step;
  using SparsityAlgorithm::options;
  using SparsityAlgorithm::set_mask;
  using SparsityAlgorithm::start_masks;
  using SparsityAlgorithm::uncount_step;
  using Weights = std::deque<SparseWeight>;

  static Weights& weights_of(SparsityAlgorithm& algorithm) {
    constexpr Weights& (SparsityAlgorithm::*kWeights)() = &AlgorithmAccess::weights;
    return (algorithm.*kWeights)();
  }
};
struct DynamicAccess : DynamicSparsityAlgorithm {
  using DynamicSparsityAlgorithm::dense_gradient;
  using DynamicSparsityAlgorithm::rng;
  using DynamicSparsityAlgorithm::update_mask;
  using DynamicSparsityAlgorithm::wants_dense_gradient;

  static float drop_fraction_of(const DynamicSparsityAlgorithm& algorithm) {
    constexpr float (DynamicSparsityAlgorithm::*kFraction)() const = &DynamicAccess::drop_fraction;
    return (algorithm.*kFraction)();
  }
  static float fraction_at(const DynamicSparsityAlgorithm& algorithm, int64_t step) {
    constexpr float (DynamicSparsityAlgorithm::*kFraction)(int64_t, int64_t) const =
        &DynamicAccess::drop_fraction_at;
    return (algorithm.*kFraction)(step, algorithm.updates());
  }
};

/// Keeps what an algorithm stands for alive longer than the base that refers to it.
struct KeptAlgorithm {
  std::shared_ptr<SparsityAlgorithm> kept;
};

/// What C++ is given for an algorithm that Python owns, its only part.
class SharedAlgorithm final : private KeptAlgorithm, public SparsityAlgorithm {
 public:
  explicit SharedAlgorithm(std::shared_ptr<SparsityAlgorithm> algorithm)
      : KeptAlgorithm{std::move(algorithm)},
        SparsityAlgorithm((kept.get()->*&AlgorithmAccess::options)()) {
    autoupdate = kept->autoupdate;
    add_part(*kept);
  }

  const std::shared_ptr<SparsityAlgorithm>& algorithm() const { return kept; }

  std::string_view type() const override { return kept->type(); }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override {
    // One that is applied itself is offered all, as an algorithm with parts.
    const bool chooses = outer() == nullptr && kept->parts().empty();
    if (chooses) parameters = kept->filter().select(parameters);
    set_parameters(parameters);
    kept->adopt(module, std::move(parameters), source);
  }
  void update(Optimizer& optimizer) override {
    if (kept->autoupdate) kept->update(optimizer);
    count_step();
  }
  void forecast(Forecast& forecast) const override {
    std::vector<PlannedParameter> planned =
        forecast.parameters.empty() ? kept->plan(forecast.steps) : kept->plan(forecast);
    forecast.parameters = std::move(planned);
  }
  StateDict state_dict() const override { return kept->state_dict(); }
  void load_state_dict(const StateDict& state) override {
    load_own(state);
    kept->load_state_dict(state);
  }
};

/// The keys of an algorithm's entry, from a class's keywords. Functions for `init_method` and
/// `param_filter`, which a configuration has no text for, are taken out of the keywords.
struct AlgorithmKeys {
  AlgorithmKeys(const py::object& sparsity, const py::kwargs& keywords);

  Config entry;
  uint64_t seed = 0;
  py::object init_method = py::none();
  py::object param_filter = py::none();

  bool has_functions() const { return !init_method.is_none() || !param_filter.is_none(); }
  void put_functions_into(SparsityOptions& options) const;
};

/// The built-in algorithm of that name. *Errors:* ConfigError.
template <class Kind>
std::shared_ptr<Kind> configured(const AlgorithmKeys& keys, const char* name) {
  Config entry = keys.entry;
  entry.set("algorithm", name);
  std::shared_ptr<SparsityAlgorithm> made = configure(entry, keys.seed);
  entry.require_all_read();
  return std::static_pointer_cast<Kind>(made);
}

/// Adds to the classes SparsityAlgorithm and DynamicSparsityAlgorithm.
void bind_algorithm_calls(py::module_& module, py::object& base);
void bind_dynamic_calls(py::object& dynamic);

/// A parameter's name, which has the parameter's attributes.
py::object named_parameter(const py::object& parameter);

/// A parameter filter: a glob, a list of globs, or a function f(name, parameter).
ParameterFilter to_filter(const py::object& given);

/// A weight of an algorithm, as Python has it.
struct WeightHandle {
  std::weak_ptr<SparsityAlgorithm> algorithm;
  ParameterPtr parameter;

  std::shared_ptr<SparsityAlgorithm> owner() const;
  SparseWeight& weight() const;
};

}  // namespace lacuna::python
