// What the writers of seeds share: where a seed goes, and a tensor of small numbers.
#pragma once

#include <string>
#include <string_view>

#include "lacuna/framework/core/tensor.h"

namespace lacuna::seeds {

/// The folder of all corpora; to be set first.
void set_corpus(const std::string& folder);
/// The path of a seed of a target, whose folder is made.
std::string path_of(const std::string& target, const std::string& name);
void write(const std::string& target, const std::string& name, std::string_view bytes);
std::string read(const std::string& path);
/// Leaves of a seed what follows the seal, which the targets make again.
void drop_seal(const std::string& target, const std::string& name);
/// −0.75, −0.5, …
Tensor some_tensor(const Shape& shape);

/// The seeds of checkpoints, quantized states, and files of weights.
void write_weights();

}  // namespace lacuna::seeds
