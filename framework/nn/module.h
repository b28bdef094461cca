// Module: a part of a model, with named children and parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/hooks.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Base of layers and models. A subclass registers its parameters and children in its constructor
/// and overrides `forward`. Modules are neither copied nor moved.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Runs the forward-pre hooks, then `forward` between the transforms. *Shapes:* dimension 0 is
  /// the batch. *Errors:* those of `forward`; MemoryError, with the layer, if there is no memory.
  Variable operator()(const Variable& input) { return (*this)(std::span(&input, 1)); }
  /// The same for a module of several inputs; input transforms apply to each. *Errors:* ShapeError
  /// with the module and the number of inputs if that number is wrong.
  Variable operator()(std::span<const Variable> inputs);

  /// The same for the shards of a batch (nn/sharded_batch.h), each by itself: one input and one
  /// output for each of `sharded_batch()->shards()`. Containers run them layer by layer, so that
  /// the nodes of a layer are neighbours and backward goes layer by layer too. Hooks are called
  /// once. *Errors:* StateError outside of a sharded batch, or with another number of inputs.
  std::vector<Variable> forward_shards(std::span<const Variable> inputs);

  /// The layer's type in a configuration, as in "linear".
  virtual std::string_view type() const = 0;
  /// Shape of one example's output for one example's input, without the batch dimension.
  /// *Errors:* ShapeError that names the module and both shapes.
  virtual Shape output_shape(const Shape& input) const { return input; }
  /// Shapes of one example of the children's inputs, in order, for this module's `input`; nothing
  /// if it does not know them: a walk over the model then has no shapes below it.
  virtual std::optional<std::vector<Shape>> child_inputs(const Shape& input) const;
  /// How often each element of the module's own parameter "weight" is multiplied for one example of
  /// that shape; 0 if the module does not multiply by a weight.
  virtual int64_t uses_per_weight(const Shape& /*example*/) const { return 0; }
  /// Text that a table of the model prints next to its type, such as "shortcut: identity".
  virtual std::string description() const { return {}; }
  /// Whether it joins branches that begin with the same input. Such a group adds no level to paths:
  /// its children's names follow the path of its parent.
  virtual bool joins_branches() const { return false; }

  /// Full dotted path from the outermost module ("" for itself).
  const std::string& path() const { return path_; }

  /// All parameters below, by full name, in the order they were registered.
  std::vector<ParameterPtr> parameters() const;
  /// The parameter of that name. *Errors:* StateError with the nearest name.
  ParameterPtr parameter(std::string_view name) const;
  /// Arrays below that are not trained (running statistics), by full dotted name, in the order they
  /// were registered; the names are distinct from parameters'. They may be assigned, in the same
  /// shape. *Lifetime:* the module's.
  std::vector<std::pair<std::string, Tensor*>> buffers();
  /// This module and all below, depth first.
  std::vector<Module*> modules();
  /// Direct children by their own names.
  std::vector<std::pair<std::string, Module*>> children() const;
  /// Its own parameters, without those below, by their own names.
  const std::vector<std::pair<std::string, ParameterPtr>>& own_parameters() const {
    return parameters_;
  }

  /// Redraws all values: a pure function of the seed and the parameters' names. Without it the seed
  /// is 0. Buffers get back their initial values.
  void initialize(uint64_t seed);
  /// Keeps all parameters below dense, even if a sparsity algorithm matches them.
  void set_requires_dense(bool dense);

  /// Freezes all parameters below (false), or has them trained (true): `Parameter::trainable`.
  void set_trainable(bool trainable);
  /// Freezes the parameters below whose full names match one of the globs. *Errors:* ConfigError
  /// that names a glob that matches none, and the nearest name; what earlier globs match is then
  /// frozen already.
  void freeze(const std::vector<std::string>& globs);
  /// False if `set_trainable` has frozen this module, or if it has parameters of its own and all
  /// are frozen. For layers that learn more than parameters: if this is false, running statistics
  /// do not change, even in training.
  bool trainable() const;

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

  /// Applied to the input and to the output of every later forward of this module, in the order of
  /// registration.
  using Transform = std::function<Variable(const Variable&)>;
  void register_input_transform(Transform transform) {
    input_transforms_.push_back(std::move(transform));
  }
  void register_output_transform(Transform transform) {
    output_transforms_.push_back(std::move(transform));
  }
  bool has_input_transforms() const { return !input_transforms_.empty(); }
  bool has_output_transforms() const { return !output_transforms_.empty(); }

  /// Parameters under their dotted names as `save_parameter` writes them, copies of the buffers
  /// ("<path>/<name>"), and other state of modules ("<path>/<key>").
  StateDict state_dict() const;
  /// Each parameter gets the layout it was saved in. *Errors:* CheckpointError, before anything is
  /// changed, that lists missing and unexpected parameters and buffers and those with other shapes,
  /// or reports the problem of a parameter.
  void load_state_dict(const StateDict& state);

 protected:
  virtual Variable forward(const Variable& input) = 0;
  /// For a module with several inputs, or any number. The default requires one.
  virtual Variable forward_all(std::span<const Variable> inputs);
  /// For a module whose children must run in lock step, or whose shards depend on each other. The
  /// default calls `forward_all` for one shard after the other.
  virtual std::vector<Variable> forward_in_shards(std::span<const Variable> inputs);
  /// State in addition to parameters and buffers (a counter of random draws).
  virtual StateDict extra_state() const { return {}; }
  virtual void load_extra_state(const StateDict&) {}
  /// Called by `initialize` on every module.
  virtual void reset_random(uint64_t /*seed*/) {}

  /// With an empty name, the parameter has the name of the module, which then has no children:
  /// "cls_token" is such a bare parameter. *Errors:* StateError if the pointer is null. Names are
  /// not checked: a second parameter of one name is not found by `parameter`.
  ParameterPtr register_parameter(std::string name, ParameterPtr parameter);
  /// An array that is saved and loaded but not trained. Returns the buffer itself, which the module
  /// assigns or writes, in this shape. *Lifetime:* the module's. *Errors:* StateError when the name
  /// is empty, contains '.' or '/', or is taken.
  Tensor& register_buffer(std::string name, const Tensor& initial);
  /// The name may have dots, as in "attn.c_attn". *Errors:* StateError if it is taken, begins or
  /// ends with a dot, or contains two dots in a row or a slash; if a path below the child is
  /// already that of another module or parameter of the model, or leads through a parameter; or if
  /// `child` is null.
  Module& register_module(std::string name, std::unique_ptr<Module> child);

 private:
  struct Buffer {
    std::string name;
    Tensor values, initial;
  };

  void require_no_member(const std::string& name) const;
  std::vector<std::string> buffer_differences(const StateDict& state);
  void set_path(const std::string& path, const std::string& scope);
  void set_training(bool training);

  std::string path_;
  std::string scope_;         // prefix of the children's names
  Module* parent_ = nullptr;  // the module that owns this one
  std::vector<std::pair<std::string, ParameterPtr>> parameters_;
  std::vector<std::unique_ptr<Buffer>> buffers_;  // addresses do not change
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  HookList<Module&> forward_pre_hooks_;
  std::vector<Transform> input_transforms_, output_transforms_;
  bool training_ = true;
  bool trainable_ = true;
};

}  // namespace lacuna
