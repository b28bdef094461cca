// `sparsifiers:`: sparsifiers for the inputs, outputs, gradients and weights of layers, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/nn/module.h"
#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/sparsifier.h"

namespace lacuna {

/// One entry: a tensor, as a glob on layers' paths and one of their tensors ("fc*.input",
/// "fc1.output", "fc1.input.grad", "fc1.output.grad", "fc1.weight"), and the sparsifier that keeps
/// its elements.
struct SparsifyEntry {
  std::string tensor;
  SparsifierPtr sparsifier;
  LayoutOption layout = {};  ///< of weights
  int64_t every = 1;         ///< of weights: steps for which a mask is kept

  /// *Errors:* ConfigError if `tensor` names no tensor of a layer.
  bool is_weight() const;
};

/// From a list of maps `{tensor, sparsifier, layout, every}`; null → none. *Errors:* ConfigError.
std::vector<SparsifyEntry> sparsify_from_config(const Config& list, uint64_t seed);

/// Makes the model sparsify activations and their gradients from now on. *Errors:* ConfigError if
/// an entry matches no layer, with the nearest name, or names none of a layer's tensors.
void sparsify_activations(Module& model, const std::vector<SparsifyEntry>& entries);
/// The algorithm that trains the entries' weights, to be applied to model and optimizer; null if
/// there are none. *Errors:* ConfigError if an entry has no sparsifier, or names no tensor.
std::unique_ptr<SparsityAlgorithm> sparsify_weights(const std::vector<SparsifyEntry>& entries);

}  // namespace lacuna
