#include "lacuna/framework/model/shared_keys.hpp"

#include <fmt/core.h>

namespace lacuna {
namespace {

constexpr const char *kFanIn = kSharedKeys[0], *kAttentionScale = kSharedKeys[1],
                     *kSparseGradient = kSharedKeys[2];

}  // namespace

SharedKeys::SharedKeys(const Config& model) {
  if (!model.is_map()) return;
  fan_in_ = model.get(kFanIn);
  attention_scale_ = model.get(kAttentionScale);
  sparse_gradient_ = model.get(kSparseGradient);
  if (!attention_scale_.is_null() &&
      !(attention_scale_.is_number() && attention_scale_.as<double>() > 0.0)) {
    attention_scale_.fail("a number above 0");
  }
  if (!sparse_gradient_.is_null()) sparse_gradient_.as<bool>();
}

bool SharedKeys::give(const Config& value, const char* key, ModelLayer& layer) const {
  if (value.is_null() || !layer.node.is_map() || layer.options.has(key)) return false;
  layer.options.set(key, value.clone());
  return true;
}

void SharedKeys::give_to(ModelLayer& layer, const LayerType& type) {
  const bool is_tied = !layer.options.peek("tied_to").is_null();  // without marking it as read
  if (type.has_fan_in && !is_tied) give(fan_in_, kFanIn, layer);
  if (layer.type == "attention") give(attention_scale_, "scale", layer);
  if (type.has_sparse_gradient) {
    has_embedding_ = true;
    if (give(sparse_gradient_, kSparseGradient, layer)) tables_.insert(layer.path);
    is_used_ |= layer.options.peek(kSparseGradient) == sparse_gradient_;
  }
  if (is_tied) require_own_weight(layer);
}

void SharedKeys::require_own_weight(const ModelLayer& layer) const {
  if (sparse_gradient_.is_null() || !sparse_gradient_.as<bool>()) return;
  const Config tied_to = layer.options.peek("tied_to");
  if (!tied_to.is_scalar() || !tables_.contains(tied_to.text())) return;
  sparse_gradient_.error(fmt::format(
      "'{0}' is tied to '{1}', so every row of this embedding has a gradient; give '{0}' its own "
      "weight (in presets: tie_word_embeddings: false), or remove sparse_gradient",
      layer.path, tied_to.text()));
}

void SharedKeys::require_use() const {
  if (sparse_gradient_.is_null()) return;
  if (!has_embedding_) {
    sparse_gradient_.error("this model has no token_embedding or embedding_bag");
  }
  if (!is_used_) {
    sparse_gradient_.error("all embeddings of this model state their own sparse_gradient");
  }
}

}  // namespace lacuna
