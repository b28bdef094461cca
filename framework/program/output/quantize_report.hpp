// What `quantize`, `plan`, `inspect` and `eval` report of layers in int8.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/quantize_options.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"

namespace lacuna {

/// A map for each quantized layer: `parameter`, `scale_min`, `scale_max`, `clipped_weights`,
/// `clipped_inputs`, `input_scale` and `input_zero` (absent: each example has its own; a scale of 0
/// without a zero: inputs stay float32) and `relative_error`.
Config quantized_rows(const std::vector<QuantizedLayer>& layers);
/// These as a table, a line for each.
std::string quantized_table(const Config& rows);

/// A map for each weight that is multiplied with: `parameter`, `kernel` ("int8 1x4 avx512-vnni",
/// "csr, float32 of int8 weights", or "float32"), `because` (of float32), `weights_in_group` (of
/// four; of int8 kernels) and, where the kernel is likely to lose, `advice`.
Config planned_products(Module& model, const QuantizeOptions& options);
std::string planned_lines(const Config& rows);

/// What to tell of a checkpoint's quantized layers where this processor is slow at them; empty if
/// it has none, or is not.
std::string slow_int8_note(const StateDict& checkpoint);

/// An evaluation in one precision: `splits` without confusion matrices, and `bytes` of its
/// products.
Config precision_result(const Config& splits, Module& model);
/// A line for each split, which begins with the name of the precision; with `examples_per_second`,
/// if the result has them.
std::string precision_lines(const std::string& name, const Config& result);

/// Bytes of all parameters as the products read them: in int8 where layers run so.
int64_t product_bytes(Module& model);

}  // namespace lacuna
