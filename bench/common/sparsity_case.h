// Which sparsity algorithm, at which sparsity, in which layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna::bench {

struct SparsityCase {
  std::string algorithm;  ///< as in a configuration; empty: dense training
  std::string layout;     ///< masked, csr, auto; of no meaning in dense training
  double sparsity = 0.0;
  int64_t freq = 100;  ///< steps between updates, of the algorithms that have them
  /// A pattern that sets the sparsity, as in a configuration ({type: nm, n: 2, m: 4}); null: none.
  Config pattern = {};
};

/// Sets the algorithm up for a model's parameters of these names, and has it follow the optimizer.
/// Null for dense training. *Errors:* StateError when a parameter is stored in another layout than
/// the one that was asked for.
std::unique_ptr<SparsityAlgorithm> apply_sparsity(const SparsityCase& sparsity,
                                                  const std::vector<std::string>& parameters,
                                                  Module& model, Optimizer& optimizer);

/// The layouts that parameters are stored in: "csr", or "csr, masked" where they differ.
std::string stored_layouts(const Module& model, const std::vector<std::string>& parameters);

}  // namespace lacuna::bench
