// Names that parameters have in cstorch's model zoo, so that its sparsity sections can be used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Whether a glob is written for layers of cstorch's model zoo, as in `*proj_q_dense_layer.weight`.
bool is_cstorch_glob(std::string_view glob);

/// What a parameter with a name of Hugging Face's would be called there:
/// "transformer_encoder.layers.3.self_attn.proj_q_dense_layer.weight", and the same of a decoder,
/// for "bert.encoder.layer.3.attention.self.query.weight". Empty where there is no such name.
std::vector<std::string> cstorch_names(std::string_view name);

/// Whether a glob that is written for them matches what the parameter is called there. GPT-2's
/// queries, keys and values are one weight: it is matched by what matches all three, as
/// `*dense_layer.weight` does.
bool matches_cstorch_glob(std::string_view glob, std::string_view name);

/// What to write instead of a glob that matches none of these names, though they belong to a model
/// that has such layers: GPT-2's queries, keys and values are one weight. Empty if there is
/// no advice.
std::string cstorch_advice(std::string_view glob, const std::vector<std::string>& names);

}  // namespace lacuna
