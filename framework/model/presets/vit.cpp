// ViT, with the names of Hugging Face's ViTForImageClassification (as its files have them).
#include <fmt/core.h>

#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kVitKeys = R"(
arguments:
  image_size: null
  num_channels: null
  patch_size: 16
  hidden_size: 768
  num_hidden_layers: 12
  num_attention_heads: 12
  intermediate_size: 3072
  hidden_act: gelu
  hidden_dropout_prob: 0.0
  attention_probs_dropout_prob: 0.0
  layer_norm_eps: 1.0e-12
  initializer_range: 0.02
  qkv_bias: true
  num_labels: 2
passed_over: [encoder_stride, pooler_act, pooler_output_size]
)";

constexpr const char* kVitLayers = R"(
- {type: patch_embedding, name: vit.embeddings.patch_embeddings.projection, channels: $num_channels, image: $image_size, patch: $patch_size, features: $hidden_size, init: $init}
- {type: class_token, name: vit.embeddings.cls_token, init: $init}
- {type: position_embedding, name: vit.embeddings.position_embeddings, form: parameter, positions: $positions, init: $init}
- {type: dropout, p: $hidden_dropout_prob}
- type: sequential
  name: vit.encoder.layer
  repeat: $num_hidden_layers
  layers:
    - type: residual
      layers:
        - {type: layer_norm, name: layernorm_before, eps: $layer_norm_eps}
        - {type: qkv, names: [attention.attention.query, attention.attention.key, attention.attention.value], out_features: $hidden_size, bias: $qkv_bias, init: $init}
        - {type: attention, heads: $num_attention_heads, dropout: $attention_probs_dropout_prob}
        - {type: linear, name: attention.output.dense, out_features: $hidden_size, init: $init}
        - {type: dropout, p: $hidden_dropout_prob}
    - type: residual
      layers:
        - {type: layer_norm, name: layernorm_after, eps: $layer_norm_eps}
        - {type: linear, name: intermediate.dense, out_features: $intermediate_size, init: $init}
        - $activation
        - {type: linear, name: output.dense, out_features: $hidden_size, init: $init}
        - {type: dropout, p: $hidden_dropout_prob}
- {type: layer_norm, name: vit.layernorm, eps: $layer_norm_eps}
- {type: select_token, index: 0}
- {type: linear, name: classifier, out_features: $num_labels, init: $init}
)";

// The patches of an image and the class's token; those that come in, where image_size is left out.
Config positions_of(const Arguments& arguments) {
  const Config& image = arguments.at("image_size");
  if (image.is_null()) return {};
  const auto size = image.as<int64_t>(), patch = arguments.at("patch_size").as<int64_t>();
  if (patch < 1 || size < patch || size % patch != 0) {
    image.error(
        fmt::format("images of {0} × {0} cannot be cut into patches of {1} × {1}", size, patch));
  }
  Config positions(size / patch * (size / patch) + 1);
  positions.set_position(image.position());
  return positions;
}

Config vit_section(Arguments& arguments) {
  const auto spread = arguments.at("initializer_range").as<double>();
  arguments.define_normal("init", spread, "truncated_normal");
  arguments.define("positions", positions_of(arguments));
  arguments.define_activation("activation", "hidden_act");
  return Config::map({{"layers", arguments.layers(kVitLayers)}});
}

}  // namespace

const Preset& vit() {
  static const Preset preset{.name = "vit",
                             .about = "ViT: classes of images",
                             .keys = kVitKeys,
                             .section = vit_section,
                             .widths = {"hidden_size", "intermediate_size"},
                             .heads = {"num_attention_heads"}};
  return preset;
}

}  // namespace lacuna::presets
