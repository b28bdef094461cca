// BERT, with the names of Hugging Face's BertForSequenceClassification and BertForMaskedLM, and
// DistilBERT, with those of DistilBertForSequenceClassification and DistilBertForMaskedLM.
#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kBertKeys = R"(
arguments:
  vocab_size: 30522
  hidden_size: 768
  num_hidden_layers: 12
  num_attention_heads: 12
  intermediate_size: 3072
  hidden_act: gelu
  hidden_dropout_prob: 0.1
  attention_probs_dropout_prob: 0.1
  classifier_dropout: $hidden_dropout_prob
  max_position_embeddings: 512
  type_vocab_size: 2
  layer_norm_eps: 1.0e-12
  initializer_range: 0.02
  tie_word_embeddings: true
  pad_token_id: null
  head: classification
  pooling: cls
  num_labels: 2
only:
  position_embedding_type: absolute
  is_decoder: false
  add_cross_attention: false
passed_over:
  - directionality
  - pooler_fc_size
  - pooler_num_attention_heads
  - pooler_num_fc_layers
  - pooler_size_per_head
  - pooler_type
)";

constexpr const char* kBertTrunk = R"(
- {type: token_embedding, name: bert.embeddings.word_embeddings, vocab_size: $vocab_size, padding_id: $pad_token_id, features: $hidden_size, init: $init}
- {type: position_embedding, name: bert.embeddings.position_embeddings, positions: $max_position_embeddings, init: $init}
- {type: token_type_embedding, name: bert.embeddings.token_type_embeddings, types: $type_vocab_size, init: $init}
- {type: layer_norm, name: bert.embeddings.LayerNorm, eps: $layer_norm_eps}
- {type: dropout, p: $hidden_dropout_prob}
- type: sequential
  name: bert.encoder.layer
  repeat: $num_hidden_layers
  layers:
    - type: residual
      layers:
        - {type: qkv, names: [attention.self.query, attention.self.key, attention.self.value], out_features: $hidden_size, init: $init}
        - {type: attention, heads: $num_attention_heads, dropout: $attention_probs_dropout_prob}
        - {type: linear, name: attention.output.dense, out_features: $hidden_size, init: $init}
        - {type: dropout, p: $hidden_dropout_prob}
    - {type: layer_norm, name: attention.output.LayerNorm, eps: $layer_norm_eps}
    - type: residual
      layers:
        - {type: linear, name: intermediate.dense, out_features: $intermediate_size, init: $init}
        - $activation
        - {type: linear, name: output.dense, out_features: $hidden_size, init: $init}
        - {type: dropout, p: $hidden_dropout_prob}
    - {type: layer_norm, name: output.LayerNorm, eps: $layer_norm_eps}
)";

constexpr const char* kPooler = R"(
- {type: select_token, index: 0}
- {type: linear, name: bert.pooler.dense, out_features: $hidden_size, init: $init}
- tanh
)";
constexpr const char* kClassifier = R"(
- {type: dropout, p: $classifier_dropout}
- {type: linear, name: classifier, out_features: $num_labels, init: $init}
)";

constexpr const char* kMaskedLmTransform = R"(
- labelled_tokens
- {type: linear, name: cls.predictions.transform.dense, out_features: $hidden_size, init: $init}
- $activation
- {type: layer_norm, name: cls.predictions.transform.LayerNorm, eps: $layer_norm_eps}
)";
constexpr const char* kTiedDecoder = R"(
- {type: linear, name: cls.predictions.decoder, tied_to: bert.embeddings.word_embeddings}
)";
constexpr const char* kDecoder = R"(
- {type: linear, name: cls.predictions.decoder, out_features: $vocab_size, init: $init}
)";

constexpr const char* kDistilKeys = R"(
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

constexpr const char* kDistilTrunk = R"(
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
constexpr const char* kDistilClassifier = R"(
- {type: linear, name: pre_classifier, out_features: $dim, init: $init}
- relu
- {type: dropout, p: $seq_classif_dropout}
- {type: linear, name: classifier, out_features: $num_labels, init: $init}
)";

constexpr const char* kDistilMaskedLmTransform = R"(
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

constexpr const char* kMean = R"(
- mean_pool
)";

// What stands behind the trunk, by `head`, `pooling` and `tie_word_embeddings`.
struct Heads {
  const char *first_token, *classifier;  // of pooling cls; then of any pooling
  const char *masked_lm, *tied_decoder, *decoder;
};

Config encoder(const Arguments& arguments, const char* trunk, const Heads& heads) {
  Config layers = arguments.layers(trunk);
  const std::string pooling = arguments.choice("pooling", {"cls", "mean"});
  const bool is_tied = arguments.at("tie_word_embeddings").as<bool>();
  if (arguments.choice("head", {"classification", "masked_lm"}) == "classification") {
    append(layers, arguments.layers(pooling == "cls" ? heads.first_token : kMean));
    append(layers, arguments.layers(heads.classifier));
  } else {
    append(layers, arguments.layers(heads.masked_lm));
    append(layers, arguments.layers(is_tied ? heads.tied_decoder : heads.decoder));
  }
  return Config::map({{"layers", layers}});
}

Config bert_section(Arguments& arguments) {
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  arguments.define_activation("activation", "hidden_act");
  return encoder(arguments, kBertTrunk,
                 {kPooler, kClassifier, kMaskedLmTransform, kTiedDecoder, kDecoder});
}

Config distilbert_section(Arguments& arguments) {
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  arguments.define_activation("activation_layer", "activation");
  const bool is_sinusoidal = arguments.at("sinusoidal_pos_embds").as<bool>();
  const Config positions =
      arguments.layers(is_sinusoidal ? kSinusoidalPositions : kLearnedPositions);
  arguments.define("positions", positions.items().front());
  return encoder(
      arguments, kDistilTrunk,
      {kFirstToken, kDistilClassifier, kDistilMaskedLmTransform, kTiedProjector, kProjector});
}

}  // namespace

const Preset& bert() {
  static const Preset preset{
      .name = "bert",
      .about = "BERT: head classification (pooling cls or mean) or masked_lm",
      .keys = kBertKeys,
      .section = bert_section,
      .widths = {"hidden_size", "intermediate_size"},
      .heads = {"num_attention_heads"}};
  return preset;
}

const Preset& distilbert() {
  static const Preset preset{
      .name = "distilbert",
      .about = "DistilBERT: head classification (pooling cls or mean) or masked_lm",
      .keys = kDistilKeys,
      .section = distilbert_section,
      .widths = {"dim", "hidden_dim"},
      .heads = {"n_heads"}};
  return preset;
}

}  // namespace lacuna::presets
