// QuantizationAware: a model trained with weights and activations on the grids of int8.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"
#include "lacuna/framework/quantize/learned_scales.hpp"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/sparsity/weights/plan.h"

namespace lacuna {

/// Fake quantization with straight-through gradients. While it is active, forward and backward
/// passes within a FakeWeights run with the nearest weights on a grid for each output, and with
/// inputs on their layer's grid, if they have one (fake_quantize.hpp); gradients belong to the
/// float32 weights, which the optimizer changes and which keep their masks. Grids are found when it
/// begins, by the weights and by calibration as `lacuna quantize` finds them, again when an epoch
/// (freeze_after) has passed, and then stay. Where masks change, those of their weights are found
/// at once, and all at the next epoch. Where scales are learned, they begin as they are found, and
/// change at every step (learned_scales.hpp).
///
/// *Lifetime:* the model must outlive it, and runs with input transforms of its from then on.
class QuantizationAware {
 public:
  /// Takes charge of the candidates without a reason against it. `run`: null where activations have
  /// grids of their own, or none. Steps are optimizer steps, `epoch_steps` those of an epoch.
  /// `make`: the optimizer of learned scales. *Requires* that the model is not quantized.
  QuantizationAware(Module& model, const std::vector<Int8Candidate>& candidates,
                    const QuantizeOptions& options, CalibrationRun run, int64_t begin_step,
                    int64_t freeze_step, int64_t epoch_steps,
                    const LearnedScales::MakeOptimizer& make = {});
  ~QuantizationAware();

  /// Before the first pass of a step that so many came before: finds grids where they are due.
  /// *Errors:* those of activation_ranges. *Cost:* nothing, but for two of all steps, and one after
  /// each epoch in which masks have changed.
  void begin_step(int64_t steps_before);
  /// Steps before it begins.
  int64_t steps_before() const { return begin_step_; }
  bool is_active() const;
  /// After the passes of a step, before its gradients change the weights: learned scales change.
  void step();
  /// After a step of the optimizer: finds again the scales of weights whose masks have changed, and
  /// of rows that were zeros until then. Learned scales stay, but for these rows. *Cost:* of such
  /// weights, that of their grids.
  void follow_masks(std::span<const MaskUpdate> updates);

  StateDict state_dict() const;
  /// *Errors:* CheckpointError when the state is of other weights.
  void load_state_dict(const StateDict& state);

 private:
  friend class FakeWeights;
  struct Layer {
    ParameterPtr weight;
    std::vector<float> scales = {};
    std::optional<Int8Grid> input = {};
  };
  struct Shared;  // with the transforms of modules

  void find_grids();
  void activate();
  void take_learned();
  bool learns() const;

  Module& model_;
  QuantizeOptions options_;
  CalibrationRun run_;
  int64_t begin_step_, freeze_step_, epoch_steps_;
  bool is_frozen_ = false;
  std::vector<Layer> layers_;
  std::shared_ptr<Shared> shared_;
};

/// While it lives, the weights of an active QuantizationAware are those of its grids; then they are
/// the float32 ones again, but for those whose pattern has changed meanwhile. Null: nothing.
class FakeWeights {
 public:
  explicit FakeWeights(QuantizationAware* quantization);
  ~FakeWeights();
  FakeWeights(const FakeWeights&) = delete;
  FakeWeights& operator=(const FakeWeights&) = delete;

 private:
  struct Kept {
    ParameterPtr weight;
    PatternPtr pattern;
    Tensor values;
  };
  std::vector<Kept> kept_;
};

/// The grids that a training has found, from its state ("qat" of a checkpoint), for the weights of
/// a model with that checkpoint's values. *Errors:* CheckpointError.
std::vector<KnownGrid> trained_grids(const StateDict& state, const Module& model);

}  // namespace lacuna
