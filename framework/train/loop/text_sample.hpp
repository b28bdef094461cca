// train.sample: a text that a language model writes at evaluations.
#pragma once

#include <string>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// The prompt and its continuation by the model that is evaluated. The draws are the same each
/// time, from a separate generator, so the run does not change. *Requires* `train.sample`, which
/// the experiment was checked for. *Errors:* DataError where a logit is NaN.
std::string sample_text(const Experiment& experiment);

}  // namespace lacuna
