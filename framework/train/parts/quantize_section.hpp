// The section `quantize` of an experiment: checked, and with `algorithm: qat` what trains by it.
#pragma once

#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {

/// Stages of the sparsity part. *Errors:* ConfigError at the section: for what it says by itself,
/// for layers that cannot be quantized, and for more calibration examples than there are.
void read_quantize_section(ExperimentBuild& build);
void check_quantize_section(ExperimentBuild& build);

}  // namespace lacuna
