// QuantizedLayer: what a checkpoint holds of a layer in int8, and how a model runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/int8/int8_convolution.hpp"
#include "lacuna/framework/autograd/int8/int8_linear.hpp"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/linear.h"

namespace lacuna {

struct QuantizedLayer {
  std::string weight;               ///< the parameter's name
  std::vector<int8_t> values{};     ///< of the pattern's elements, ascending by flat index
  std::vector<float> scales{};      ///< of each output
  std::optional<Int8Grid> input{};  ///< absent: each example has its own, or inputs have none
  /// False: inputs stay float32, and so does the product, with weights scale · value.
  bool rounds_inputs = true;
  double clipped_weights = 0.0;  ///< fractions that lie outside of their grids
  double clipped_inputs = 0.0;   ///< of the calibration; 0 without one grid for all examples
  double relative_error = 0.0;   ///< as relative_output_error
};

/// Under the weight's name: "values" (int8), "scales", the numbers, and
/// "input_scale" and "input_zero" where there is one grid. "input_scale" 0 without a zero: inputs
/// are not rounded.
StateDict state_of(const std::vector<QuantizedLayer>& layers);
/// *Errors:* CheckpointError for what no quantization writes.
std::vector<QuantizedLayer> quantized_layers(const StateDict& state);
/// Whether inputs stay float32. It is the same for all layers of a run.
bool have_float32_inputs(const std::vector<QuantizedLayer>& layers);

/// "input_scale" and "input_zero" of a layer's state, if they are there. *Errors:* CheckpointError.
std::optional<Int8Grid> input_grid_of(const StateDict& layer, const std::string& weight);

/// The layer's product, by the positions of its weight and its bias. *Errors:* CheckpointError when
/// the values are not as many as the positions, or scales as outputs.
std::shared_ptr<const Int8Linear> int8_linear_of(const QuantizedLayer& quantized,
                                                 const Linear& layer);
std::shared_ptr<const Int8ConvolutionLayer> int8_convolution_of(const QuantizedLayer& quantized,
                                                                const Conv2d& layer);

/// Makes the layers of a model run in int8 (Linear::run_in_int8, Conv2d::run_in_int8), as a state
/// says that state_of gave. Layers whose inputs are not rounded stay float32: their weights become
/// scale · value, in the layout that they have. *Errors:* CheckpointError, also for a layer that
/// the model does not have.
void run_in_int8(Module& model, const StateDict& state);

}  // namespace lacuna
