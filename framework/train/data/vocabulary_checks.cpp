#include "lacuna/framework/train/data/vocabulary_checks.h"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/tokens/token_embedding.h"

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

}  // namespace

bool has_same_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (data.tokenizer() == nullptr || learned == nullptr) return true;
  return data.tokenizer()->to_json() == learned->to_json();
}

void require_teachers_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (has_same_vocabulary(data, learned)) return;
  throw ConfigError("the teacher was trained on text with another vocabulary than the data's");
}

void require_rows_for_ids(const Config& section, const Module& model, const Dataset& data) {
  require_rows_below(section, model, data.vocabulary_size());
}

}  // namespace lacuna
