// DistilBERT, with the names of Hugging Face's DistilBertForSequenceClassification and
// DistilBertForMaskedLM.
#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kKeys = R"(
arguments:
  vocab_size: 30522
  dim: 768
  hidden_dim: $(4 * dim)
  n_layers: 6
  n_heads: 12
  activation: gelu
  dropout: 0.1
  attention_dropout: 0.1
  seq_classif_dropout: 0.2
  max_position_embeddings: 512
  sinusoidal_pos_embds: false
  initializer_range: 0.02
  tie_word_embeddings: true
  pad_token_id: null
  head: classification
  pooling: cls
  num_labels: 2
passed_over: [qa_dropout, tie_weights_]
)";

constexpr const char* kTrunk = R"(
- {type: token_embedding, name: distilbert.embeddings.word_embeddings, vocab_size: $vocab_size, padding_id: $pad_token_id, features: $dim, init: $init}
- $positions
- {type: layer_norm, name: distilbert.embeddings.LayerNorm, eps: 1.0e-12}
- {type: dropout, p: $dropout}
- type: sequential
  name: distilbert.transformer.layer
  repeat: $n_layers
  layers:
    - type: residual
      layers:
        - {type: qkv, names: [attention.q_lin, attention.k_lin, attention.v_lin], out_features: $dim, init: $init}
        - {type: attention, heads: $n_heads, dropout: $attention_dropout}
        - {type: linear, name: attention.out_lin, out_features: $dim, init: $init}
    - {type: layer_norm, name: sa_layer_norm, eps: 1.0e-12}
    - type: residual
      layers:
        - {type: linear, name: ffn.lin1, out_features: $hidden_dim, init: $init}
        - $activation_layer
        - {type: linear, name: ffn.lin2, out_features: $dim, init: $init}
        - {type: dropout, p: $dropout}
    - {type: layer_norm, name: output_layer_norm, eps: 1.0e-12}
)";

constexpr const char* kLearnedPositions = R"(
- {type: position_embedding, name: distilbert.embeddings.position_embeddings, positions: $max_position_embeddings, init: $init}
)";
constexpr const char* kSinusoidalPositions = R"(
- {type: position_embedding, name: distilbert.embeddings.position_embeddings, positions: $max_position_embeddings, kind: sinusoidal}
)";

constexpr const char* kFirstToken = R"(
- {type: select_token, index: 0}
)";
constexpr const char* kMean = R"(
- mean_pool
)";
constexpr const char* kClassifier = R"(
- {type: linear, name: pre_classifier, out_features: $dim, init: $init}
- relu
- {type: dropout, p: $seq_classif_dropout}
- {type: linear, name: classifier, out_features: $num_labels, init: $init}
)";

constexpr const char* kMaskedLmTransform = R"(
- labelled_tokens
- {type: linear, name: vocab_transform, out_features: $dim, init: $init}
- $activation_layer
- {type: layer_norm, name: vocab_layer_norm, eps: 1.0e-12}
)";
constexpr const char* kTiedProjector = R"(
- {type: linear, name: vocab_projector, tied_to: distilbert.embeddings.word_embeddings}
)";
constexpr const char* kProjector = R"(
- {type: linear, name: vocab_projector, out_features: $vocab_size, init: $init}
)";

Config section(Arguments& arguments) {
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  arguments.define_activation("activation_layer", "activation");
  const bool is_sinusoidal = arguments.at("sinusoidal_pos_embds").as<bool>();
  const Config positions =
      arguments.layers(is_sinusoidal ? kSinusoidalPositions : kLearnedPositions);
  arguments.define("positions", positions.items().front());
  Config layers = arguments.layers(kTrunk);
  const std::string pooling = arguments.choice("pooling", {"cls", "mean"});
  const bool is_tied = arguments.at("tie_word_embeddings").as<bool>();
  if (arguments.choice("head", {"classification", "masked_lm"}) == "classification") {
    append(layers, arguments.layers(pooling == "cls" ? kFirstToken : kMean));
    append(layers, arguments.layers(kClassifier));
  } else {
    append(layers, arguments.layers(kMaskedLmTransform));
    append(layers, arguments.layers(is_tied ? kTiedProjector : kProjector));
  }
  return Config::map({{"layers", layers}});
}

}  // namespace

const Preset& distilbert() {
  static const Preset preset{
      .name = "distilbert",
      .about = "DistilBERT: head classification (pooling cls or mean) or masked_lm",
      .keys = kKeys,
      .section = section};
  return preset;
}

}  // namespace lacuna::presets
