#include "lacuna/framework/train/checks/vocabulary_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {
namespace {

// The tokens are below a bound: the data's whole vocabulary is.
void require_tokens_below(const Config& section, const Module& module, int64_t rows, int64_t ids,
                          const std::string& key) {
  if (ids <= rows) return;
  section.error(
      fmt::format("layer '{}' ({}) has {}, and the data has ids up to {}; give {}: {} (or leave it "
                  "out: it is the data's), or make the data's vocabulary smaller",
                  module.path(), module.type(), plural(rows, "row"), ids - 1, key, ids));
}

void require_integers_below(const Config& section, const Module& module,
                            const RequestedInput& asked, const IndexTensor& integers) {
  if (integers.numel() == 0) return;
  const int64_t largest = std::ranges::max(integers.values());
  if (largest < asked.below) return;
  section.error(fmt::format(
      "layer '{}' ({}) has {}: {}, and the data's '{}' go up to {}; give type_vocab_size: {} (in a "
      "list of layers: {})",
      module.path(), module.type(), asked.below_key, asked.below, asked.name, largest, largest + 1,
      asked.below_key));
}

void require_named(const Config& section, const Module& module, const NamedTensors& batch,
                   int64_t ids) {
  if (const auto* user = dynamic_cast<const NamedInputUser*>(&module)) {
    const RequestedInput asked = user->requested_input();
    const auto found = batch.find(asked.name);
    if (asked.name == kInputIds && asked.below > 0) {
      require_tokens_below(section, module, asked.below, ids, asked.below_key);
    } else if (found != batch.end() && asked.below > 0) {
      require_integers_below(section, module, asked, found->second);
    }
    if (!batch.empty() && found == batch.end() && !asked.name.empty() &&
        asked.name != asked.usual) {
      std::vector<std::string> names;
      for (const auto& [there, tensor] : batch) names.push_back(there);
      section.error(
          fmt::format("layer '{}' ({}) needs '{}', which the data's batches do not have; {}",
                      module.path(), module.type(), asked.name, suggest_name(asked.name, names)));
    }
  }
  for (const auto& [name, child] : module.children()) require_named(section, *child, batch, ids);
}

}  // namespace

bool has_same_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (data.tokenizer() == nullptr || learned == nullptr) return true;
  return data.tokenizer()->to_json() == learned->to_json();
}

void require_learned_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (has_same_vocabulary(data, learned)) return;
  throw CheckpointError(
      "the data has a different vocabulary than the run was trained with; a run can only continue "
      "on the same data");
}

void require_teachers_vocabulary(const Dataset& data, const TokenizerPtr& learned) {
  if (has_same_vocabulary(data, learned)) return;
  throw ConfigError("the teacher was trained on text with a different vocabulary than the data's");
}

void require_tokens_fit(const Config& section, const Module& model, const Dataset& data) {
  const int64_t ids = data.vocabulary_size(), first = 0;
  require_named(section, model,
                ids == 0 || data.size() == 0 ? NamedTensors() : data.gather({&first, 1}).named,
                ids);
}

}  // namespace lacuna
