// LearnedScales: scales of int8 grids that are trained with the weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

/// The scales of some layers' weights, one for each output, and of their inputs, as step sizes that
/// an optimizer changes. A scale is the one that was found × a factor that begins at 1; the factor
/// gets the gradient
///
///     1 / √(numel · largest step) · dL/dscale / found scale
///
/// so that sgd changes the scale as LSQ does, and an optimizer that divides a gradient by its own
/// size, as adam, by a share of its found scale. numel: of a row's weights that are not zero, or of
/// an example's inputs. dL/dscale is that of a grid whose rounding errors, in steps, stay. Zeros of
/// inputs stay. *Source:* Esser et al., 2020 (arXiv:1902.08153), eq. 3 and section 2.2; scales
/// begin as they are found, where the paper takes 2 mean |w| / √largest step.
class LearnedScales {
 public:
  using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterPtr>)>;
  /// Factors are at least this.
  static constexpr float kLeastFactor = 1.0f / 1024.0f;

  /// `make`: the optimizer. `inputs`: scales of inputs are learned, too.
  LearnedScales(const std::vector<ParameterPtr>& weights, bool inputs, const MakeOptimizer& make);

  /// What was found for a layer, by its place; training begins there.
  void begin(size_t layer, const std::vector<float>& scales, const std::optional<Int8Grid>& input);
  /// Scales that have been found for rows that were zeros until then; others stay.
  void find_rows(size_t layer, const std::vector<float>& scales);
  /// The run has done so many steps, by which learning rates go.
  void set_steps(int64_t steps);

  std::vector<float> scales(size_t layer) const;  ///< as they are now
  std::optional<Int8Grid> input(size_t layer) const;

  /// Inputs on their grid, with gradients of them and of its scale. `rows`: examples in them.
  Variable on_grid(size_t layer, const Variable& x, int64_t rows) const;

  /// A step, of the gradients that products with the weights on their grids have left: weights that
  /// are clipped lose theirs, and scales change. Before `begin` it is counted alone. *Requires*
  /// that weights have the values that were on the grids. *Cost:* a pass over the weights.
  void step();

  /// Below the weights' names "found_scales", "factors", and of inputs "found_input_scale",
  /// "input_factor"; and "optimizer".
  StateDict state_dict() const;
  /// `input_zero` of inputs is not in this state: the grids of inputs are given. *Errors:*
  /// CheckpointError.
  void load_state_dict(const StateDict& state, const std::vector<std::optional<Int8Grid>>& inputs);

 private:
  struct Layer {
    ParameterPtr weight;
    ParameterPtr factors;  // of each output
    ParameterPtr input_factor;
    std::vector<float> found = {};  // empty: not begun
    std::optional<Int8Grid> found_input = {};
  };
  static void take_gradient(Layer& layer);

  std::vector<Layer> layers_;
  std::unique_ptr<Optimizer> optimizer_;
};

/// Where the elements of a weight's rows begin, ascending by flat index.
std::vector<int64_t> row_begins(const Parameter& weight);

}  // namespace lacuna
