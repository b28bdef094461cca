// `model.widen`: a sparse network that is made so wide that it costs as much as the dense one that
// is written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// The options of the key.
struct WidenOptions {
  enum class Match {
    Flops,       ///< multiply-adds of an example, forward, with the final nonzeros
    Parameters,  ///< nonzeros of the whole model
  };
  Match match = Match::Flops;
  /// Keys of layers, and arguments of templates, whose numbers are widths; empty: the preset's.
  std::vector<std::string> keys;
};

/// *Errors:* ConfigError at a key that is unknown, or a model that states no widths.
WidenOptions read_widen(const Config& model);

/// What a network costs.
struct ModelCost {
  double flops = 0.0;  ///< of an example, forward
  int64_t nnz = 0;
};

/// A width as written, and its new value.
struct WidthChange {
  std::string path;  ///< in the configuration
  int64_t written = 0, widened = 0;
};

struct Widening {
  std::vector<WidthChange> changes;
  ModelCost dense, widened;
  /// "model.n_embd 128 → 288: 24.1 of 24.5 million multiply-adds".
  std::string in_words(WidenOptions::Match match) const;
};

/// Costs of a configuration's model: `sparse` with the final nonzeros of its sparsity, or with all
/// weights. May write defaults into it.
using CostOfConfig = std::function<ModelCost(Config& config, bool sparse)>;

/// Replaces the widths in `config.model` and takes the key away: the network whose cost is nearest
/// to that of the dense one. The first width is a multiple of 8, from 128 features on and with a
/// pattern of 16, and of twice the heads; others are rounded to 8 or 16. *Errors:* ConfigError
/// without sparsity, without widths, with `init_from`, and where 64 times the width is not enough.
/// *Cost:* some ten models built, and their masks drawn.
Widening widen_model(Config& config, const CostOfConfig& cost);

}  // namespace lacuna
