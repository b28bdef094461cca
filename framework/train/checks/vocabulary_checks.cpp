#include "lacuna/framework/train/checks/vocabulary_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/layers/tokens/attention.h"
#include "lacuna/layers/tokens/token_embedding.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "lacuna/layers/tokens/token_type_embedding.h"

namespace lacuna {
namespace {

void require_rows_below(const Config& section, const Module& module, int64_t ids) {
  const auto* embedding = dynamic_cast<const TokenEmbedding*>(&module);
  if (embedding != nullptr && embedding->weight()->shape()[0] < ids) {
    section.error(
        fmt::format("layer '{}' (token_embedding) has {} rows, and the data has ids up to {}; give "
                    "vocab_size: {} (or leave it out: it is the data's), or make the data's "
                    "vocabulary smaller",
                    module.path(), embedding->weight()->shape()[0], ids - 1, ids));
  }
  for (const auto& [name, child] : module.children()) require_rows_below(section, *child, ids);
}

// The name by which a layer asks for integers of a batch, and the one that a batch may be without.
std::pair<std::string, std::string> asked_for(const Module& module) {
  if (const auto* attention = dynamic_cast<const Attention*>(&module)) {
    return {attention->options().mask, kAttentionMask};
  }
  if (const auto* pool = dynamic_cast<const MeanPool*>(&module)) {
    return {pool->options().mask, kAttentionMask};
  }
  if (const auto* select = dynamic_cast<const SelectToken*>(&module)) {
    return {select->options().mask, kAttentionMask};
  }
  if (const auto* types = dynamic_cast<const TokenTypeEmbedding*>(&module)) {
    return {types->options().input, kTokenTypes};
  }
  return {};
}

void require_types(const Config& section, const TokenTypeEmbedding& layer,
                   const NamedTensors& batch) {
  const auto found = batch.find(layer.options().input);
  if (found == batch.end() || found->second.numel() == 0) return;
  const int64_t largest = std::ranges::max(found->second.values());
  if (largest < layer.options().types) return;
  section.error(fmt::format(
      "layer '{}' (token_type_embedding) has types: {}, and the data's '{}' go up to {}; give "
      "type_vocab_size: {} (in a list of layers: types)",
      layer.path(), layer.options().types, layer.options().input, largest, largest + 1));
}

void require_named(const Config& section, const Module& module, const NamedTensors& batch) {
  const auto [name, usual] = asked_for(module);
  if (!name.empty() && name != usual && !batch.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [there, tensor] : batch) names.push_back(there);
    section.error(
        fmt::format("layer '{}' ({}) asks for '{}', which the data's batches do not have; {}",
                    module.path(), module.type(), name, suggest_name(name, names)));
  }
  if (const auto* types = dynamic_cast<const TokenTypeEmbedding*>(&module)) {
    require_types(section, *types, batch);
  }
  for (const auto& [child_name, child] : module.children()) require_named(section, *child, batch);
}

}  // namespace

bool has_same_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (data.tokenizer() == nullptr || learned == nullptr) return true;
  return data.tokenizer()->to_json() == learned->to_json();
}

void require_teachers_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (has_same_vocabulary(data, learned)) return;
  throw ConfigError("the teacher was trained on text with another vocabulary than the data's");
}

void require_tokens_fit(const Config& section, const Module& model, const Dataset& data) {
  require_rows_below(section, model, data.vocabulary_size());
  if (data.vocabulary_size() == 0 || data.size() == 0) return;
  const int64_t first = 0;
  require_named(section, model, data.gather({&first, 1}).named);
}

}  // namespace lacuna
