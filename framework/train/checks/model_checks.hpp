// What a model must be for the data that it is to learn from, and for the memory that there is,
// found out before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// What the loss holds a model's outputs against, of one example.
struct WantedOutput {
  Shape shape;
  int64_t values = 0;           ///< the last dimension
  const char* values_are = "";  ///< "classes", …, for messages
};

/// *Errors:* ConfigError at the last layer unless it gives what is wanted.
void require_output_fits(const Sequential& model, const ModelLayers& layers, const Dataset& data,
                         const WantedOutput& wanted);

/// Sparse examples (those whose batches have `feature_ids`) need an embedding_bag as the first
/// layer, and no other examples can have one. *Errors:* ConfigError at the layer.
void require_sparse_inputs_fit(Sequential& model, const ModelLayers& layers, const Dataset& data);

/// Why a model's attention does not suit the labels of tokens: a token that sees the next one
/// learns nothing by predicting it, and a hidden one is to be predicted from the tokens on both
/// sides.
struct AttentionMisfit {
  std::string layer;  ///< full path
  std::string type;
  std::string reason;
};
std::optional<AttentionMisfit> find_attention_misfit(const Module& model, const Dataset& data);
/// *Errors:* ConfigError at the layer where there is a misfit.
void require_attention_fits(const Module& model, const ModelLayers& layers, const Dataset& data);

/// Batches of sentences are as long as their longest sentence: a layer must take any length. Tries
/// the shapes of the shortest and the longest sentence that there are. Nothing is done for examples
/// of one length. *Errors:* ConfigError at the layer that does not take them.
void require_lengths_fit(const Sequential& model, const ModelLayers& layers,
                         const DataSplits& data);
/// The same by passes in evaluation mode, which also try masks of padding. *Cost:* two passes of at
/// most two examples; the values are drawn.
void require_sentences_fit(Sequential& model, const ModelLayers& layers, const DataSplits& data);

/// The values of all parameters, as they are stored, must fit in the given bytes: they are all
/// drawn or read before the first step, and gradients and optimizer states come on top. Nothing is
/// allocated. *Errors:* MemoryError at the layer of a parameter that alone does not fit, or at the
/// model, with its largest parameter.
void require_values_fit(Module& model, const ModelLayers& layers, int64_t memory);
/// The same of each parameter of one layer, as it is made: a model whose weights stay dense is then
/// refused before the rest of it is there.
void require_layer_fits(const Module& module, const ModelLayer& layer, const ModelLayers& layers,
                        int64_t memory);

using BytesOfParameter = std::function<double(const Parameter&)>;

/// What training holds for each parameter must fit, too: its values, and if it is trained a
/// gradient like them and `states`. Activations come on top. *Errors:* MemoryError at the model.
void require_training_fits(Module& model, const ModelLayers& layers, const BytesOfParameter& states,
                           int64_t memory);

}  // namespace lacuna
