// Int8 weights with scales in files of other tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {

/// A weight of 8 bits, [outputs, inputs] or, of a convolution, [outputs, inputs, kernel...]: w =
/// scale of its output · value.
struct Int8Weight {
  std::string name;
  SignedBytes values;
  std::vector<float> scales;  ///< of each output
  struct Input {
    float scale = 1.0f;
    int32_t zero = 0;  ///< the byte that stands for 0, from 0 to 255
  };
  std::optional<Input> input{};  ///< of static activations
  bool rounds_inputs = true;     ///< false: activations are float32 (kRoundsInputs)
  /// Where a batch_norm behind the layer is part of its product: what a step of each output is
  /// worth then. Empty: the file does not say.
  std::vector<float> folded_scales{};
};

/// The key of a file's metadata that says whether inputs of its int8 weights are rounded: "true",
/// as without the key, or "false".
inline constexpr const char* kRoundsInputs = "lacuna.rounds_inputs";

/// Where the arrays of an int8 weight are in a file.
struct Int8Places {
  std::string name;
  Shape shape;
  size_t values = 0, scale = 0;
  std::optional<size_t> bitmask{};  ///< of a weight whose values are those of a mask
  std::optional<size_t> input_scale{}, input_zero{}, folded_scale{};
};

/// Whether the array of I8 at `values` is a weight of this name: there is a NAME_scale.
bool is_int8_weight(const ArrayFile& file, const std::map<std::string, size_t>& places,
                    const std::string& name, size_t values);

/// Finds arrays of I8 next to which there is a NAME_scale, and takes them and what belongs to them
/// (`input_scale` and `input_zero_point` of the layer, NAME_folded_scale) out of `places`.
/// `sparse`: the weights that have been found already, by a bitmask, which get what belongs to
/// them, too.
std::map<std::string, Int8Places> find_int8(const ArrayFile& file,
                                            std::map<std::string, size_t>& places,
                                            std::map<std::string, Int8Places> sparse = {});

/// The mask of a weight that has a bitmask. *Errors:* DataError.
BitMask read_bitmask(const ArrayFile& file, const Int8Places& places);

/// The weight as it is in the file, with a scale for each row; `is_turned`: the file has it
/// [inputs, outputs], and it is turned round. *Errors:* DataError for scales that are not one for
/// each output (or one for all), not numbers from 0, for a grid of inputs that is none, and for one
/// of inputs that are not rounded.
Int8Weight read_int8(const ArrayFile& file, const Int8Places& places, bool is_turned);

/// Whether the config.json of a folder says that the inputs of its int8 weights stay float32: it
/// has groups of compressed-tensors (`quantization_config.config_groups`), all without
/// `input_activations`. False without such a file. *Errors:* ConfigError if it cannot be read, or
/// only some of the groups have none.
bool states_float32_inputs(const std::string& folder);

/// Its values as the file has them, in float32: [inputs, outputs] stays so. *Errors:* as read_int8.
Tensor read_dequantized(const ArrayFile& file, const Int8Places& places);

}  // namespace lacuna
