// WeightAverage: the exponential moving average of a model's weights, which is evaluated in their
// place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

class ShownAverage;

/// Arrays of a module in addition to its parameters that training changes and evaluation reads
/// (running statistics), with their full names.
using NamedBuffers = std::vector<std::pair<std::string, Tensor*>>;

/// After each step a ← decay · a + (1 − decay) · w, for every parameter that is trained and every
/// buffer; after the first step at which averaging is on, a = w.
///
/// The average of a sparse parameter has its pattern and follows it: it is a slot of the parameter
/// (`Parameter::slots`), so that a position that is dropped is forgotten, and one that is grown
/// starts at zero, as the weight does. Where a dense master is trained (`MasterWeight`), the
/// average is the master's, and what is shown of it is the part in the present mask.
///
/// *Cost:* memory of as many floats as the parameters store; at each step one pass, which reads
/// weights and average and writes the average.
class WeightAverage {
 public:
  /// *Ownership:* shares the model's parameters; the buffers must outlive it.
  WeightAverage(const Module& model, const WeightAverageOptions& options,
                const NamedBuffers& buffers = {});
  WeightAverage(const WeightAverage&) = delete;
  WeightAverage& operator=(const WeightAverage&) = delete;

  /// Must be called after each step of the optimizer, with its number of steps.
  void update(int64_t steps);
  /// Until it is destroyed, the parameters have the averages as their values; no effect before
  /// averaging has begun. Values and patterns must not change meanwhile.
  std::unique_ptr<ShownAverage> show();

  /// The averages, under the parameters' names, as optimizer states are saved: in the parameter's
  /// shape where it is stored so, or a master is averaged, else the nonzeros ascending by flat
  /// index.
  StateDict state_dict() const;
  /// Restores them after so many steps; the parameters' patterns and masters must be restored
  /// before. *Errors:* CheckpointError, before anything is changed, that lists what is missing,
  /// unexpected or of another shape.
  void load_state_dict(const StateDict& state, int64_t steps);

 private:
  std::vector<ParameterPtr> averaged() const;  // those that are trained
  bool has_begun(int64_t steps) const { return steps > 0 && steps >= options_.start; }

  struct AveragedBuffer {
    std::string name;
    Tensor* values;
    Tensor average;  // undefined until averaging begins
  };

  std::vector<ParameterPtr> parameters_;
  std::vector<AveragedBuffer> buffers_;
  WeightAverageOptions options_;
};

/// The averages in place of the weights, for as long as it lives. *Cost:* none where the average
/// has the parameter's pattern (the two are exchanged), else an array for each master; what layouts
/// derive from values is derived again, and once more afterwards.
class ShownAverage {
 public:
  /// Exchanges the tensors of each pair of `buffers`, too, which must outlive it.
  ShownAverage(const std::vector<ParameterPtr>& parameters,
               std::vector<std::pair<Tensor*, Tensor*>> buffers);
  ~ShownAverage();
  ShownAverage(const ShownAverage&) = delete;
  ShownAverage& operator=(const ShownAverage&) = delete;

 private:
  struct Shown {
    ParameterPtr parameter;
    Tensor own;  // the parameter's values; undefined where they are in the slot meanwhile
  };
  std::vector<Shown> shown_;
  std::vector<std::pair<Tensor*, Tensor*>> buffers_;
};

/// Gives a model's parameters and buffers the averages that `state_dict` has saved for them as
/// their values; the patterns must be those of then. What has none keeps its values. *Errors:*
/// CheckpointError on an average of neither, or of another shape.
void load_average(const StateDict& state, Module& model, const NamedBuffers& buffers = {});

}  // namespace lacuna
