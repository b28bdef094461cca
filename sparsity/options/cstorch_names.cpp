#include "lacuna/sparsity/options/cstorch_names.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

struct Equivalent {
  std::string_view ours;    // behind the block's number
  std::string_view theirs;  // behind the layer's
};

constexpr std::array<Equivalent, 25> kEquivalents{{
    // BERT
    {"attention.self.query", "self_attn.proj_q_dense_layer"},
    {"attention.self.key", "self_attn.proj_k_dense_layer"},
    {"attention.self.value", "self_attn.proj_v_dense_layer"},
    // ViT
    {"attention.attention.query", "self_attn.proj_q_dense_layer"},
    {"attention.attention.key", "self_attn.proj_k_dense_layer"},
    {"attention.attention.value", "self_attn.proj_v_dense_layer"},
    // both
    {"attention.output.dense", "self_attn.proj_output_dense_layer"},
    {"intermediate.dense", "ffn.ffn.0.linear_layer"},
    {"output.dense", "ffn.ffn.1.linear_layer"},
    // DistilBERT
    {"attention.q_lin", "self_attn.proj_q_dense_layer"},
    {"attention.k_lin", "self_attn.proj_k_dense_layer"},
    {"attention.v_lin", "self_attn.proj_v_dense_layer"},
    {"attention.out_lin", "self_attn.proj_output_dense_layer"},
    {"ffn.lin1", "ffn.ffn.0.linear_layer"},
    {"ffn.lin2", "ffn.ffn.1.linear_layer"},
    // GPT-2
    {"attn.c_proj", "self_attn.proj_output_dense_layer"},
    {"mlp.c_fc", "ffn.ffn.0.linear_layer"},
    {"mlp.c_proj", "ffn.ffn.1.linear_layer"},
    // Llama
    {"self_attn.q_proj", "self_attn.proj_q_dense_layer"},
    {"self_attn.k_proj", "self_attn.proj_k_dense_layer"},
    {"self_attn.v_proj", "self_attn.proj_v_dense_layer"},
    {"mlp.gate_proj", "ffn.ffn.0.linear_layer_for_glu"},
    {"mlp.up_proj", "ffn.ffn.0.linear_layer"},
    {"mlp.down_proj", "ffn.ffn.1.linear_layer"},
    {"self_attn.o_proj", "self_attn.proj_output_dense_layer"},
}};

// What GPT-2 has in one.
constexpr std::string_view kFused = "attn.c_attn";
constexpr std::array<std::string_view, 3> kFusedParts = {
    "self_attn.proj_q_dense_layer", "self_attn.proj_k_dense_layer", "self_attn.proj_v_dense_layer"};

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

struct InBlock {
  std::string number;  // of the block
  std::string layer;   // "attention.self.query"
  std::string array;   // "weight"
};

// A name's parts around the last number in it.
std::optional<InBlock> split(std::string_view name) {
  const size_t last = name.rfind('.');
  if (last == std::string_view::npos) return std::nullopt;
  for (size_t end = name.rfind('.', last - 1); end != std::string_view::npos && end > 0;
       end = name.rfind('.', end - 1)) {
    const size_t before = name.rfind('.', end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view number = name.substr(begin, end - begin);
    if (is_number(number)) {
      return InBlock{std::string(number), std::string(name.substr(end + 1, last - end - 1)),
                     std::string(name.substr(last + 1))};
    }
  }
  return std::nullopt;
}

std::vector<std::string> names_of(const InBlock& place, std::string_view theirs) {
  std::vector<std::string> names;
  for (const char* stack : {"transformer_encoder", "transformer_decoder"}) {
    names.push_back(std::string(stack) + ".layers." + place.number + "." + std::string(theirs) +
                    "." + place.array);
  }
  return names;
}

bool matches_any(std::string_view glob, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const auto& name) { return glob_match(glob, name); });
}

}  // namespace

bool is_cstorch_glob(std::string_view glob) {
  static constexpr std::array<std::string_view, 5> kMarks = {
      "dense_layer", "ffn.ffn.", "linear_layer", "transformer_encoder.layers.",
      "transformer_decoder.layers."};
  return std::ranges::any_of(kMarks, [&](auto mark) { return glob.find(mark) != glob.npos; });
}

std::vector<std::string> cstorch_names(std::string_view name) {
  const std::optional<InBlock> place = split(name);
  if (!place) return {};
  for (const auto& [ours, theirs] : kEquivalents) {
    if (place->layer == ours) return names_of(*place, theirs);
  }
  return {};
}

bool matches_cstorch_glob(std::string_view glob, std::string_view name) {
  if (!is_cstorch_glob(glob)) return false;
  const std::optional<InBlock> place = split(name);
  if (!place) return false;
  if (place->layer == kFused) {
    return std::ranges::all_of(kFusedParts, [&](std::string_view theirs) {
      return matches_any(glob, names_of(*place, theirs));
    });
  }
  return matches_any(glob, cstorch_names(name));
}

std::string cstorch_advice(std::string_view glob, const std::vector<std::string>& names) {
  if (!is_cstorch_glob(glob)) return "";
  for (const std::string& name : names) {
    const std::optional<InBlock> place = split(name);
    if (!place || place->layer != kFused) continue;
    for (const std::string_view theirs : kFusedParts) {
      if (!matches_any(glob, names_of(*place, theirs))) continue;
      return "queries, keys and values of this model are one weight each block, [q | k | v]: name "
             "it "
             "'*attn.c_attn.weight', with balance_out_groups: 3 where each is to have as many "
             "nonzeros";
    }
  }
  return "";
}

}  // namespace lacuna
