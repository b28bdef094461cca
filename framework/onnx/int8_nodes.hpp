// Linear products and convolutions of an ONNX model brought to int8.
#pragma once

#include <vector>

#include "lacuna/framework/onnx/int8_weight.hpp"

namespace onnx {
class ModelProto;
}

namespace lacuna {

/// Makes the initializers of these weights int8, which DequantizeLinear gives to their Gemm, MatMul
/// or Conv (NAME_scale, a scale for each output), and puts what these multiply with on its grid: by
/// QuantizeLinear and DequantizeLinear (….input_scale, ….input_zero_point: uint8), or by operators
/// on floats where each row or image has its own, or leaves it in float32. *Errors:* Error for a
/// weight that the model does not multiply with.
void write_int8_nodes(onnx::ModelProto& model, const std::vector<OnnxInt8Weight>& weights);

}  // namespace lacuna
