// What a new run's `model` section becomes before its layers are built: widths that are chosen, and
// the scale of attention.
#pragma once

#include <string>

#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {

/// What the data determines of a model that leaves it out.
ModelContext model_context(const ExperimentBuild& b);

/// Makes the model as wide as `model.widen` asks for (widen.hpp), if it is there. Returns what was
/// chosen, in words; empty where nothing was. *Requires* data and loss. *Errors:* ConfigError.
std::string apply_widen(ExperimentBuild& b);

/// The key of an ONNX file's metadata that holds the run's `model.attention_scale`, if it has one.
inline constexpr const char* kAttentionScaleKey = "lacuna.attention_scale";

/// Weights of a run, or of an ONNX file of lacuna, are used with the scale of attention that they
/// were trained with: writes that of `model.init_from` into the section. *Errors:* ConfigError if
/// the section has another one; DataError for a file whose scale is not a positive number.
void adopt_attention_scale(const Config& config);

/// Whether `model.init_from` is a run of lacuna whose parametrization divides the outputs: the
/// weights of its last layer include the factor.
bool loads_divided_outputs(const Config& config);

}  // namespace lacuna
