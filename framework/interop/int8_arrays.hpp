// The int8 weights of a quantized run, as files of others have them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"

namespace lacuna {

/// The layers that a run has in int8; none of a run that is not quantized. *Errors:*
/// CheckpointError.
std::vector<QuantizedLayer> int8_layers(const LoadedRun& run);

/// The values of a layer in the weight's shape, with zeros where the mask has no position.
/// *Errors:* CheckpointError when they are not as many as its positions.
SignedBytes dense_int8(const LoadedRun& run, const QuantizedLayer& layer);

/// The metadata of a file with these int8 layers: `metadata`, and kRoundsInputs if their inputs are
/// not rounded.
std::map<std::string, std::string> int8_metadata(const std::vector<QuantizedLayer>& layers,
                                                 std::map<std::string, std::string> metadata);

/// How the zero of a layer's inputs is written: as the byte that stands for 0, or less 128, for
/// readers whose bytes have a sign.
enum class Int8Zero { Byte, Signed };

/// Puts int8 weights in the place of those in float32, with NAME_scale and, of inputs that have one
/// grid, `input_scale` and `input_zero_point` of the layer. A batch_norm that is part of an int8
/// weight is taken out of it, for it stands in the file, too; NAME_folded_scale are the scales as
/// they were. `is_sparse`: a sparse weight is NAME.data, of which the values at its positions are
/// replaced. *Errors:* ConfigError for a scale of attention, which the file cannot state.
void put_int8(const LoadedRun& run, const std::vector<QuantizedLayer>& layers, Int8Zero zero,
              std::vector<NamedArray>& arrays, bool is_sparse = false);

}  // namespace lacuna
