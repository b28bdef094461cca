// train.sample: a text that a language model writes at evaluations.
#pragma once

#include <string>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// The prompt and what the model, as it is evaluated, goes on with. The same draws each time, of a
/// generator of their own: nothing of the run changes. *Requires* `train.sample`, which the
/// experiment was checked for. *Errors:* DataError where a logit is NaN.
std::string sample_text(const Experiment& experiment);

}  // namespace lacuna
