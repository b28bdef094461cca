// Llama, with the names of Hugging Face's LlamaForCausalLM.
#include <fmt/core.h>

#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kLlamaKeys = R"(
arguments:
  vocab_size: 32000
  hidden_size: 4096
  intermediate_size: 11008
  num_hidden_layers: 32
  num_attention_heads: 32
  num_key_value_heads: $num_attention_heads
  head_dim: $(hidden_size / num_attention_heads)
  rms_norm_eps: 1.0e-6
  rope_theta: 10000.0
  attention_bias: false
  mlp_bias: false
  attention_dropout: 0.0
  initializer_range: 0.02
  tie_word_embeddings: false
  pad_token_id: null
only:
  hidden_act: silu
  rope_scaling: null
passed_over: [max_position_embeddings]
)";

constexpr const char* kLlamaTrunk = R"(
- {type: token_embedding, name: model.embed_tokens, vocab_size: $vocab_size, padding_id: $pad_token_id, features: $hidden_size, init: $init}
- type: sequential
  name: model.layers
  repeat: $num_hidden_layers
  layers:
    - type: residual
      layers:
        - {type: rms_norm, name: input_layernorm, eps: $rms_norm_eps}
        - {type: qkv, names: [self_attn.q_proj, self_attn.k_proj, self_attn.v_proj], out_features: $hidden_size, kv_features: $(num_key_value_heads * head_dim), bias: $attention_bias, init: $init}
        - {type: rotary, heads: $num_attention_heads, kv_heads: $num_key_value_heads, base: $rope_theta}
        - {type: attention, heads: $num_attention_heads, kv_heads: $num_key_value_heads, causal: true, dropout: $attention_dropout}
        - {type: linear, name: self_attn.o_proj, out_features: $hidden_size, bias: $attention_bias, init: $init}
    - type: residual
      layers:
        - {type: rms_norm, name: post_attention_layernorm, eps: $rms_norm_eps}
        - type: parallel
          layers:
            - {type: linear, name: mlp.gate_proj, out_features: $intermediate_size, bias: $mlp_bias, init: $init}
            - {type: linear, name: mlp.up_proj, out_features: $intermediate_size, bias: $mlp_bias, init: $init}
        - swiglu
        - {type: linear, name: mlp.down_proj, out_features: $hidden_size, bias: $mlp_bias, init: $init}
- {type: rms_norm, name: model.norm, eps: $rms_norm_eps}
)";

constexpr const char* kLlamaTiedHead = R"(
- {type: linear, name: lm_head, bias: false, tied_to: model.embed_tokens}
)";
constexpr const char* kLlamaHead = R"(
- {type: linear, name: lm_head, bias: false, out_features: $vocab_size, init: $init}
)";

Config llama_section(Arguments& arguments) {
  const auto features = arguments.at("hidden_size").as<int64_t>();
  const auto heads = arguments.at("num_attention_heads").as<int64_t>();
  const auto of_head = arguments.at("head_dim").as<int64_t>();
  if (of_head * heads != features) {
    arguments.at("head_dim")
        .error(fmt::format("{} heads of {} features must be the hidden_size, {}", heads, of_head,
                           features));
  }
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  Config layers = arguments.layers(kLlamaTrunk);
  const bool is_tied = arguments.at("tie_word_embeddings").as<bool>();
  append(layers, arguments.layers(is_tied ? kLlamaTiedHead : kLlamaHead));
  return Config::map({{"layers", layers}});
}

}  // namespace

const Preset& llama() {
  static const Preset preset{
      .name = "llama",
      .about = "Llama: a language model with rms_norm, rotary positions, SwiGLU, kv_heads",
      .keys = kLlamaKeys,
      .section = llama_section,
      .widths = {"hidden_size", "intermediate_size"},
      .heads = {"num_attention_heads", "num_key_value_heads"}};
  return preset;
}

}  // namespace lacuna::presets
