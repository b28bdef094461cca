// StackPart: the arrays of one layer in a file, and what layer their names and shapes make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {

struct StackPart {
  enum class Kind { Linear, Convolution, BatchNorm, LayerNorm, RmsNorm };

  std::string name;  ///< "features.0"
  Kind kind = Kind::Linear;
  Shape weight;
  bool has_bias = false;

  bool is_norm() const { return kind != Kind::Linear && kind != Kind::Convolution; }
  int64_t outputs() const { return weight[0]; }
  /// Of a linear layer; of a convolution those of one group.
  int64_t inputs() const { return weight[1]; }
};

/// Groups a file's arrays by layers, in the natural order of their names ("2" before "10").
/// *Errors:* CheckpointError, in words, at the first array that is of no such layer.
std::vector<StackPart> stack_parts(const StoredValues& stored);

/// Whether a name comes before another one, runs of digits compared as numbers.
bool is_before(const std::string& a, const std::string& b);
/// The runs of digits in a name, "2.conv1" → "2 1": what belongs together often has the same.
std::string numbers_in(const std::string& name);
/// The last part of a name as a number; −1 where it is none: "features.10" → 10.
int64_t place_in_sequence(const std::string& name);
/// "features" of "features.0".
std::string parent_of_layer(const std::string& name);

}  // namespace lacuna
