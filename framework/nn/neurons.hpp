// Neurons of a chain of linear layers, and how many of them lie on a path from input to output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

struct NeuronCounts {
  int64_t neurons = 0;  ///< inputs and outputs included
  int64_t on_path = 0;  ///< reached from an input, and reaching an output, over nonzeros
  friend bool operator==(const NeuronCounts&, const NeuronCounts&) = default;
};

/// Counts over the weights [out, in] of layers that feed each other, from the first to the last.
/// *Errors:* ShapeError where one does not take what the one before gives. *Cost:* O(nonzeros);
/// 2 bytes a neuron and the positions of one weight.
NeuronCounts count_neurons(std::span<const PatternPtr> chain);

/// Counts a model whose weights of linear layers feed each other in the order in which they were
/// registered; nothing where there are none, they do not fit each other, the model joins branches,
/// or there are convolutions:
/// what feeds what is not known of these, for their inputs come over pools, additions and
/// flattening.
std::optional<NeuronCounts> count_neurons(const Module& model);

}  // namespace lacuna
