// Model cards: a trained run described in Markdown, as model hubs show it.
#pragma once

#include <string>

#include "lacuna/framework/interop/load_run.h"

namespace lacuna {

/// The name of a card in a folder of a model.
inline constexpr const char* kCardName = "README.md";

/// The model, its data, its results at the step of the checkpoint (from summary.json of the run's
/// folder, where there is one), the sparsity of each layer, how it was trained and how it is
/// loaded; the licence is left to fill in. `format` is that of the files next to it, empty for
/// none.
std::string model_card(const LoadedRun& run, const std::string& format);

/// Whether a file was written by `model_card`, whatever somebody has filled in since.
bool is_model_card(const std::string& path);

}  // namespace lacuna
