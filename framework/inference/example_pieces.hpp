// Batches in pieces: how many examples a model runs at a time where nothing is trained.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// How a batch is run without being recorded.
struct ExamplePieces {
  int64_t examples = 1;  ///< at a time
  /// Where the outputs of one example alone are too many: rows (tokens) that the last layer is
  /// given at a time. 0: all.
  int64_t rows = 0;
  /// What the activations of a piece take at most, inputs included: an estimate from the layers'
  /// shapes.
  double bytes = 0.0;
};

/// What a piece's activations may take, where an example alone does not take more.
inline constexpr double kPieceBytes = 64.0 * 1024 * 1024;

/// The pieces of a batch of so many examples: as many examples as kPieceBytes hold, at least one,
/// and at least 16 images, which sparse convolutions compute side by side. All of them where the
/// output of one depends on the others (`mixes_examples`). *Errors:* ShapeError when the model does
/// not take such examples.
ExamplePieces example_pieces(Module& model, const Shape& example, int64_t batch_size);

/// Whether a module's inputs or outputs are changed on their way (`sparsifiers:`).
bool sparsifies_activations(Module& model);

/// Whether an example's output may depend on the other examples of its batch although nothing is
/// trained: activations are sparsified, or a batch normalization uses the batch's moments.
bool mixes_examples(Module& model);

/// The last layer of the model, where it computes each row of its input by itself; else null.
Module* last_row_layer(Module& model);

/// The values of one example that are held at once in a forward pass that is not recorded, its
/// input among them: an estimate from the layers' shapes, without the kernels' scratch memory.
double held_values(const Module& model, const Shape& example);

}  // namespace lacuna
