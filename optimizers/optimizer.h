// Optimizer: everything that optimizers share, except the update rule itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/schedule.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/hooks.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/optimizers/step_scope.h"
#include "lacuna/optimizers/weight_ages.h"

namespace lacuna {

/// An option of an optimizer that has an invalid value. `key` is its dotted path among the options
/// ("betas", "groups.0.lr"), which gives the line in a configuration file.
class OptionError : public ConfigError {
 public:
  OptionError(std::string key, const std::string& problem)
      : ConfigError("optimizer option '" + key + "': " + problem),
        key_(std::move(key)),
        problem_(problem) {}
  const std::string& key() const { return key_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string key_;
  std::string problem_;
};

/// *Errors:* OptionError unless `value` is finite and at least `low`.
void require_option_at_least(const std::string& key, double value, double low);
/// *Errors:* OptionError unless 0 ≤ value < 1.
void require_option_fraction(const std::string& key, double value);

/// Parameters with options of their own.
struct ParameterGroup {
  /// Globs over full dotted names, as in "*.bias". A parameter belongs to the first group that
  /// matches it; those that none matches form the default group.
  std::vector<std::string> params = {};
  std::optional<Schedule> lr = std::nullopt;          ///< absent: the optimizer's
  std::optional<double> weight_decay = std::nullopt;  ///< absent: the optimizer's
};

/// The form of an optimizer's step. It determines how rates for one size of a network are converted
/// to another size (Optimizer::set_factors).
enum class UpdateRule {
  Other,          ///< unknown
  Gradient,       ///< lr · (gradient + weight_decay · w), or a running mean of it: sgd
  Adam,           ///< the same, divided by its own size
  DecoupledAdam,  ///< Adam of the gradient alone, and lr · weight_decay · w
};

/// Factors of one parameter for the values of the options.
struct UpdateFactors {
  double lr = 1.0;
  double eps = 1.0;
  double weight_decay = 1.0;
  friend bool operator==(const UpdateFactors&, const UpdateFactors&) = default;
};

/// The options that all optimizers share. Each optimizer's options struct has fields of these
/// names, with defaults of its own.
struct OptimizerOptions {
  Schedule lr;                ///< learning rate, at least 0, as a function of the steps done
  double weight_decay = 0.0;  ///< at least 0
  /// Steps over which the learning rate rises: it is multiplied by min(1, (steps done + 1)/warmup).
  /// From 0 to 2⁵³.
  int64_t warmup = 0;
  /// Largest norm of all gradients together, above 0; larger gradients are scaled down to it, as by
  /// PyTorch's clip_grad_norm_. Absent: no clipping.
  std::optional<double> clip_norm = std::nullopt;
  /// Kinds of parameters whose weight decay is 0, except in groups that set their own: "bias"
  /// (parameters with this name), "norm" (others of rank 1: the factors of a norm), "embedding"
  /// (tables of tokens, positions, types).
  std::vector<std::string> no_decay = {};
  std::vector<ParameterGroup> groups = {};
};

/// Updates parameters from their gradients. A subclass defines its type, the states of each
/// parameter, and one function, `update`, elementwise over arrays that are aligned to the
/// parameter's pattern, so it contains no code for sparsity.
///
/// The states are in the parameters' slots, so that they move with a pattern. They are zeros at a
/// parameter's first update, also if an earlier optimizer has left its own there: of two optimizers
/// whose states have the same names, only one can go on with a parameter.
///
/// If a parameter's gradient is kept by rows (Parameter::row_gradient), a step changes only those
/// rows, values and states: other rows get no decay, and their running means stay as they are.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Name in a configuration, as in "adam".
  virtual std::string_view type() const = 0;
  /// The form of its steps.
  virtual UpdateRule update_rule() const { return UpdateRule::Other; }

  /// From now on the options are multiplied by these factors, which are requested at each update of
  /// a parameter. If a group has its own learning rate, that rate and the weight decay are not
  /// multiplied; nor is a group's own weight decay. Null: all factors are 1.
  void set_factors(std::function<UpdateFactors(const Parameter&)> factors) {
    factors_ = std::move(factors);
  }
  /// The factors of a parameter now. *Requires* one of `parameters()`.
  UpdateFactors factors(const Parameter& parameter) const;

  /// In order: checks the learning rates, runs pre-step hooks, opens scopes, clips, calls `update`
  /// for every parameter with a gradient, commits and closes scopes, counts the step, runs
  /// post-step hooks. Parameters that have no gradient or are frozen (`Parameter::trainable`) do
  /// not change. *Errors:* ConfigError, before any change, if a learning-rate schedule gives a
  /// negative or infinite number or NaN; errors of a hook or `update`, after all scopes are closed;
  /// StateError, with earlier parameters already updated, if a state that is kept dense cannot be
  /// stored in a parameter's layout.
  void step();
  /// Drops all gradients, then calls the hooks.
  void zero_grad();
  /// Drops states of the same names that an earlier optimizer has left at a parameter, as this
  /// one's first update does; later calls do nothing. Call it before you set states by hand.
  /// *Errors:* StateError unless it is one of `parameters()`.
  void begin_states(const Parameter& parameter);
  /// Whether a parameter's states are this optimizer's: from its first update, `begin_states` or
  /// `load_state_dict` on. *Errors:* as begin_states.
  bool has_begun(const Parameter& parameter) const { return has_begun_[index_of(parameter)]; }

  /// The hooks receive this optimizer: directly before and after the parameters change, and after
  /// the gradients are dropped. A scope hook adds scopes to `scopes` that last while values change,
  /// starting before clipping.
  HookHandle register_step_scope_hook(std::function<void(Optimizer&, StepScopes& scopes)> hook);
  HookHandle register_step_pre_hook(std::function<void(Optimizer&)> hook);
  HookHandle register_step_post_hook(std::function<void(Optimizer&)> hook);
  HookHandle register_zero_grad_hook(std::function<void(Optimizer&)> hook);

  /// `optimizer.apply(algorithm)`: lets a sparsity algorithm follow the steps.
  template <class Algorithm>
  void apply(Algorithm& algorithm) {
    algorithm.apply(*this);
  }

  const std::vector<ParameterPtr>& parameters() const { return parameters_; }
  /// Steps done so far.
  int64_t steps() const { return steps_; }
  /// Bytes that the states of a parameter take, with the pattern that it has. They are allocated at
  /// its first update.
  int64_t state_bytes(const Parameter& parameter) const;
  /// Learning rate of the default group at the next step.
  double lr() const { return learning_rate(groups_[0]); }

  /// "type", "step", and for each parameter "<name>/step" and its states "<name>/<slot>": in the
  /// parameter's shape if stored so, else the nonzeros ascending by flat index. Returns copies.
  StateDict state_dict() const;
  /// Restores a `state_dict`, whatever the layout of the parameters was then; their
  /// patterns must be restored first. *Errors:* CheckpointError, before any change, that
  /// lists what is missing, unexpected, of another shape, or of another type of
  /// optimizer.
  void load_state_dict(const StateDict& state);

 protected:
  /// A state kept for each parameter. Dense: for every position, whatever the pattern.
  struct StateSlot {
    std::string name;
    bool requires_dense = false;
  };

  /// Arguments of `update`. Values, gradient and states (in the order of `state_slots`) are arrays
  /// of one length, aligned to the parameter's pattern; a dense state has the parameter's numel.
  struct Update {
    Parameter& parameter;
    /// For a gradient by rows, only the elements of these rows, as in all arrays here.
    std::span<float> values;
    std::span<const float> gradient;
    std::span<const std::span<float>> states;
    double learning_rate;
    double weight_decay;
    double eps_factor;  ///< for the small number of a divisor, if there is one
    int64_t step;       ///< number of updates of this parameter, including this one: from 1
    /// Number of updates of each element since it was grown, excluding this one, up to `most_age`;
    /// `update` must increment it. Empty if `most_age` is 0.
    std::span<uint16_t> ages = {};
  };

  /// *Errors:* ConfigError on a value out of range, and on a group's glob that matches no
  /// parameter (with the nearest name); StateError without parameters, on a null one, or when two
  /// share a name.
  Optimizer(std::vector<ParameterPtr> parameters, const OptimizerOptions& options);

  /// The states of each parameter that `update` works on and that are saved: the same at any time.
  virtual std::vector<StateSlot> state_slots() const { return {}; }
  /// The largest age of a weight that affects `update`, up to WeightAges::kMost; 0: no ages are
  /// kept. Ages are saved as "<name>/age", in the form of the states.
  virtual int64_t most_age() const { return 0; }
  /// Changes values and states of one parameter. Elementwise, so that compressed arrays train to
  /// the same numbers.
  virtual void update(const Update& update) = 0;
  /// Whether this update leaves elements unchanged whose value, gradient and states are all zero.
  /// Masks then need not be applied again after each step.
  virtual bool keeps_zeros(const Update& update) const {
    (void)update;
    return false;
  }

 private:
  // The settings of a group's parameters, with defaults filled in.
  struct Group {
    Schedule lr;
    double weight_decay;
    bool has_own_decay = false;
    bool has_own_lr = false;
  };

  void add_group(const ParameterGroup& group, const std::string& key);
  void choose_decays(const std::vector<std::string>& no_decay);
  double learning_rate(const Group& group) const;
  std::vector<double> checked_learning_rates() const;
  void clip_gradients(double max_norm);
  UpdateFactors factors_of(size_t index) const;
  size_t index_of(const Parameter& parameter) const;
  void begin_states(size_t index);
  void update_parameter(size_t index, double learning_rate, const std::vector<StateSlot>& slots);
  void update_rows(const Update& whole, std::span<const int64_t> rows);
  std::vector<std::string> differences(const StateDict& state) const;
  bool keeps_whole_ages(const Parameter& parameter) const;
  void load_ages(size_t index, const StateDict& state);

  std::vector<ParameterPtr> parameters_;
  int64_t warmup_;
  std::optional<double> clip_norm_;
  std::vector<Group> groups_;     // the default group first
  std::vector<size_t> group_of_;  // by parameter
  std::vector<double> decay_of_;
  std::vector<int64_t> steps_of_;
  std::vector<bool> has_begun_;  // by parameter: its states are this optimizer's
  std::function<UpdateFactors(const Parameter&)> factors_;  // null: 1
  std::vector<WeightAges> ages_of_;                         // all empty if `most_age` is 0
  int64_t steps_ = 0;
  int64_t earlier_steps_ = 0;  // of the run whose states continue here (lacuna shrink)
  HookList<Optimizer&> step_pre_hooks_;
  HookList<Optimizer&, StepScopes&> step_scope_hooks_;
  HookList<Optimizer&> step_post_hooks_;
  HookList<Optimizer&> zero_grad_hooks_;
};

}  // namespace lacuna
