#include "lacuna/framework/program/settings/keys.hpp"

#include <algorithm>

#include "lacuna/framework/data/load_data.h"

namespace lacuna {

std::vector<KeyTraits> config_keys() {
  std::vector<KeyTraits> keys = {
      {.path = "data", .in_eval = true},
      {.path = "train.epochs", .may_change = true},
      {.path = "train.steps", .may_change = true},
      {.path = "train.threads", .may_change = true, .in_eval = true},
      {.path = "train.log_every", .may_change = true},
      {.path = "train.eval_every", .may_change = true},
      {.path = "train.eval_batch_size", .may_change = true, .in_eval = true},
      {.path = "train.checkpoint", .may_change = true},
      {.path = "train.early_stopping", .may_change = true},
      {.path = "train.prefetch", .may_change = true},
      {.path = "train.tensorboard", .may_change = true},
      {.path = "train.sample", .may_change = true},
      {.path = "train.seed", .in_eval = true},
      {.path = "train.ema", .in_eval = true},
      {.path = "run_dir", .may_change = true},
      {.path = "sparsity"},
      {.path = "sparsity.layout", .may_change = true},
      {.path = "sparsifiers"},
      {.path = "sparsifiers.layout", .may_change = true},
      {.path = "loss", .in_eval = true},
      {.path = "loss.label_smoothing"},
      {.path = "loss.teacher", .is_path = true, .may_change = true, .in_eval = true},
      {.path = "model"},
      {.path = "model.init_from", .is_path = true},  // or a map
      {.path = "model.init_from.path", .is_path = true},
      {.path = "model.from_hf", .is_path = true},
      {.path = "optimizer"},
      {.path = "quantize"},
      {.path = "parametrization"},
      {.path = "csr_up_to", .is_measured = true},
      {.path = "convolution_algorithms", .is_measured = true}};
  std::vector<KeyTraits> all;
  for (const auto& [name, type] : dataset_registry().entries()) {
    for (const std::string& key : type.make.paths) {
      const std::string path = "data." + key;
      if (std::ranges::find(all, path, &KeyTraits::path) != all.end()) continue;
      all.push_back({.path = path, .is_path = true, .may_change = true, .in_eval = true});
    }
  }
  all.insert(all.end(), keys.begin(), keys.end());
  return all;
}

KeyTraits find_key(std::string_view path) {
  const std::vector<KeyTraits> keys = config_keys();
  for (std::string_view above = path; !above.empty();) {
    const auto key = std::ranges::find(keys, above, &KeyTraits::path);
    if (key != keys.end()) return *key;
    const size_t dot = above.rfind('.');
    above = dot == std::string_view::npos ? "" : above.substr(0, dot);
  }
  return {};
}

}  // namespace lacuna
