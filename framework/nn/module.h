// Module: a part of a model, with named children and parameters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/hooks.h"
#include "lacuna/framework/core/state_dict.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Base of layers and models. A subclass registers its parameters and children in its constructor
/// and overrides `forward`. Modules live where they are made: they are neither copied nor moved.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Runs the forward-pre hooks, then `forward` between the transforms. *Shapes:* dimension 0 is
  /// the batch.
  Variable operator()(const Variable& input);

  /// The layer's type in a configuration, as in "linear".
  virtual std::string_view type() const = 0;
  /// Shape of one example's output for one example's input, without the batch dimension.
  /// *Errors:* ShapeError that names the module and both shapes.
  virtual Shape output_shape(const Shape& input) const { return input; }

  /// Full dotted path from the outermost module ("" for itself).
  const std::string& path() const { return path_; }

  /// All parameters below, by full name, in the order they were registered.
  std::vector<ParameterPtr> parameters() const;
  /// The parameter of that name. *Errors:* StateError with the nearest name.
  ParameterPtr parameter(std::string_view name) const;
  /// This module and all below, depth first.
  std::vector<Module*> modules();
  /// Direct children by their own names.
  std::vector<std::pair<std::string, Module*>> children() const;

  /// Draws all values anew: a pure function of the seed and the parameters' names. Without it the
  /// seed is 0.
  void initialize(uint64_t seed);
  /// Keeps all parameters below dense, whatever sparsity algorithms match.
  void set_requires_dense(bool dense);

  /// Training mode (the default) and evaluation mode; dropout differs between them.
  void train() { set_training(true); }
  void eval() { set_training(false); }
  bool training() const { return training_; }

  /// `model.apply(algorithm)`: makes the matching parameters sparse.
  template <class Algorithm>
  void apply(Algorithm& algorithm) {
    algorithm.apply(*this);
  }

  /// Called before every forward of this module.
  HookHandle register_forward_pre_hook(std::function<void(Module&)> hook) {
    return forward_pre_hooks_.add(std::move(hook));
  }

  /// Applied to what every later forward of this module is given, and to what it gives, in the
  /// order they were registered.
  using Transform = std::function<Variable(const Variable&)>;
  void register_input_transform(Transform transform) {
    input_transforms_.push_back(std::move(transform));
  }
  void register_output_transform(Transform transform) {
    output_transforms_.push_back(std::move(transform));
  }

  /// Parameters under their dotted names as `save_parameter` writes them, and what modules keep
  /// besides ("<path>/<key>").
  StateDict state_dict() const;
  /// Each parameter gets the layout it was saved in. *Errors:* CheckpointError, before anything is
  /// changed, that lists what is missing, unexpected or of another shape, or says what is wrong
  /// with a parameter.
  void load_state_dict(const StateDict& state);

 protected:
  virtual Variable forward(const Variable& input) = 0;
  /// What the module keeps besides parameters (a counter of random draws).
  virtual StateDict extra_state() const { return {}; }
  virtual void load_extra_state(const StateDict&) {}
  /// Called by `initialize` on every module.
  virtual void reset_random(uint64_t /*seed*/) {}

  ParameterPtr register_parameter(std::string name, ParameterPtr parameter);
  /// *Errors:* StateError when the name is empty, contains a dot, or is taken.
  Module& register_module(std::string name, std::unique_ptr<Module> child);

 private:
  void set_path(const std::string& path);
  void set_training(bool training);

  std::string path_;
  std::vector<std::pair<std::string, ParameterPtr>> parameters_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  HookList<Module&> forward_pre_hooks_;
  std::vector<Transform> input_transforms_, output_transforms_;
  bool training_ = true;
};

}  // namespace lacuna
