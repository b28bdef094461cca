// BERT, with the names of Hugging Face's BertForSequenceClassification and BertForMaskedLM.
#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kKeys = R"(
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

constexpr const char* kTrunk = R"(
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
constexpr const char* kMean = R"(
- mean_pool
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

Config section(Arguments& arguments) {
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  arguments.define_activation("activation", "hidden_act");
  Config layers = arguments.layers(kTrunk);
  const std::string pooling = arguments.choice("pooling", {"cls", "mean"});
  const bool is_tied = arguments.at("tie_word_embeddings").as<bool>();
  if (arguments.choice("head", {"classification", "masked_lm"}) == "classification") {
    append(layers, arguments.layers(pooling == "cls" ? kPooler : kMean));
    append(layers, arguments.layers(kClassifier));
  } else {
    append(layers, arguments.layers(kMaskedLmTransform));
    append(layers, arguments.layers(is_tied ? kTiedDecoder : kDecoder));
  }
  return Config::map({{"layers", layers}});
}

}  // namespace

const Preset& bert() {
  static const Preset preset{
      .name = "bert",
      .about = "BERT: head classification (pooling cls or mean) or masked_lm",
      .keys = kKeys,
      .section = section};
  return preset;
}

}  // namespace lacuna::presets
