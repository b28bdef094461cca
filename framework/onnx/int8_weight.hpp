// An int8 weight as an ONNX file has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// The weight of a linear layer that is written as int8, with the grid of what it is multiplied
/// with.
struct OnnxInt8Weight {
  std::string name;            ///< of the parameter
  std::vector<int8_t> values;  ///< dense, as the parameter's shape
  std::vector<float> scales;   ///< of each output
  bool rounds_inputs = true;   ///< false: the inputs stay float32
  /// Of the inputs, scale · (byte − zero); 0: each row of the inputs has its own grid.
  float input_scale = 0.0f;
  uint8_t input_zero = 0;
};

}  // namespace lacuna
