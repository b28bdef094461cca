// GPT-2, with the names of Hugging Face's GPT2LMHeadModel.
#include <algorithm>
#include <cmath>

#include "lacuna/framework/model/presets/preset.hpp"

namespace lacuna::presets {
namespace {

constexpr const char* kGpt2Keys = R"(
arguments:
  vocab_size: 50257
  n_positions: 1024
  n_embd: 768
  n_layer: 12
  n_head: 12
  n_inner: $(4 * n_embd)
  activation_function: gelu_new
  resid_pdrop: 0.1
  embd_pdrop: 0.1
  attn_pdrop: 0.1
  layer_norm_epsilon: 1.0e-5
  initializer_range: 0.02
  tie_word_embeddings: true
only:
  scale_attn_weights: true
  scale_attn_by_inverse_layer_idx: false
  add_cross_attention: false
passed_over:
  - n_ctx
  - reorder_and_upcast_attn
  - summary_activation
  - summary_first_dropout
  - summary_proj_to_labels
  - summary_type
  - summary_use_proj
)";

constexpr const char* kGpt2Trunk = R"(
- {type: token_embedding, name: transformer.wte, vocab_size: $vocab_size, features: $n_embd, init: $init}
- {type: position_embedding, name: transformer.wpe, positions: $n_positions, init: $init}
- {type: dropout, p: $embd_pdrop}
- type: sequential
  name: transformer.h
  repeat: $n_layer
  layers:
    - type: residual
      layers:
        - {type: layer_norm, name: ln_1, eps: $layer_norm_epsilon}
        - {type: linear, name: attn.c_attn, out_features: $(3 * n_embd), init: $init}
        - {type: attention, heads: $n_head, causal: true, dropout: $attn_pdrop}
        - {type: linear, name: attn.c_proj, out_features: $n_embd, init: $projection_init}
        - {type: dropout, p: $resid_pdrop}
    - type: residual
      layers:
        - {type: layer_norm, name: ln_2, eps: $layer_norm_epsilon}
        - {type: linear, name: mlp.c_fc, out_features: $n_inner, init: $init}
        - $activation
        - {type: linear, name: mlp.c_proj, out_features: $n_embd, init: $projection_init}
        - {type: dropout, p: $resid_pdrop}
- {type: layer_norm, name: transformer.ln_f, eps: $layer_norm_epsilon}
)";

constexpr const char* kGpt2TiedHead = R"(
- {type: linear, name: lm_head, bias: false, tied_to: transformer.wte}
)";
constexpr const char* kGpt2Head = R"(
- {type: linear, name: lm_head, bias: false, out_features: $vocab_size, init: $init}
)";

// What is added to the residual stream is drawn smaller, the more there is of it: two projections a
// block. Source: Radford et al., "Language Models are Unsupervised Multitask Learners",
// section 2.3.
double projection_spread(const Arguments& arguments) {
  const auto blocks = static_cast<double>(arguments.at("n_layer").as<int64_t>());
  return arguments.at("initializer_range").as<double>() / std::sqrt(2.0 * std::max(blocks, 1.0));
}

Config gpt2_section(Arguments& arguments) {
  arguments.define_normal("init", arguments.at("initializer_range").as<double>());
  arguments.define_normal("projection_init", projection_spread(arguments));
  arguments.define_activation("activation", "activation_function");
  Config layers = arguments.layers(kGpt2Trunk);
  const bool is_tied = arguments.at("tie_word_embeddings").as<bool>();
  append(layers, arguments.layers(is_tied ? kGpt2TiedHead : kGpt2Head));
  return Config::map({{"layers", layers}});
}

}  // namespace

const Preset& gpt2() {
  static const Preset preset{.name = "gpt2",
                             .about = "GPT-2: a language model, its head tied to the tokens",
                             .keys = kGpt2Keys,
                             .section = gpt2_section,
                             .widths = {"n_embd", "n_inner"},
                             .heads = {"n_head"}};
  return preset;
}

}  // namespace lacuna::presets
