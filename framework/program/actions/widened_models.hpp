// A model with `widen` next to the dense one that is written, and to the other way of widening it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// One of three: "dense", "flops", "parameters".
struct WidenedModel {
  std::string name;
  std::string widths;                  ///< "model.n_embd 288", …
  int64_t nonzeros = 0;                ///< at the end
  double flops = 0.0;                  ///< of an example, forward, with these
  std::optional<double> step_seconds;  ///< measured; empty if that may not fit the memory
};

/// Builds and measures all three for the configuration as it was written; none without `widen`.
/// *Cost:* three experiments on the data of one that is built, and about a second of steps each.
std::vector<WidenedModel> compare_widened(const Config& written, const Experiment& experiment);

/// A table; empty without models.
std::string widened_table(const std::vector<WidenedModel>& models);
Config to_config(const std::vector<WidenedModel>& models);

}  // namespace lacuna
