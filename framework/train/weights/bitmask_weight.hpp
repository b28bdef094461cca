// Sparse weights as `lacuna export --sparse` writes them into safetensors files: the values at the
// positions of a mask, and the mask as bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Endings of the arrays of a weight: NAME.data, float32 or int8 at the positions of the mask,
/// ascending; NAME.bitmask, int32, of which bit i % 32 of element i / 32 tells whether position i
/// of the row-major weight is in the mask; NAME.shape, the sizes of the weight.
inline constexpr std::string_view kDataEnding = ".data", kBitmaskEnding = ".bitmask",
                                  kShapeEnding = ".shape";

/// The bits in words of 32; those behind the last position are 0.
std::vector<int32_t> bitmask_words(const BitMask& mask);

/// The mask that words of 32 bits give. *Errors:* DataError, without a name, when words and shape
/// do not fit together, or it has not `count` positions.
BitMask bitmask_of(const Shape& shape, std::span<const int64_t> words, int64_t count);

/// Adds the weight to a state, dense, and its mask as "<as>_mask". *Errors:* those of
/// bitmask_of.
void add_bitmask_weight(const Shape& shape, std::span<const int64_t> words, const Tensor& data,
                        const std::string& as, StateDict& state);

}  // namespace lacuna
