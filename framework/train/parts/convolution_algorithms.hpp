// The `convolution_algorithms` of a configuration: how the products of its convolutions are
// computed where they run dense.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Whether choices that a section leaves open are measured on this machine, or fixed.
enum class Choice { Measured, Plain };

/// Gives each conv2d of the model its algorithms: those that the section has for its path, as in
/// `conv1: [winograd, winograd, direct]` (forward, input gradient, weight gradient), and where it
/// has none the fastest ones for such a batch, measured here (Plain: direct). Writes them all into
/// the section, so that a repeat or a resume measures nothing. *Errors:* ConfigError at an unknown
/// path or name.
void choose_algorithms(Config& config, Module& model, int64_t batch,
                       Choice choice = Choice::Measured);

}  // namespace lacuna
