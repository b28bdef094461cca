// What a checkpoint holds of an algorithm, besides masks and values.
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {
namespace {

// Eight bits to a byte, the lowest first.
ByteArray packed(const BitMask& mask) {
  ByteArray bytes{Shape{(mask.size() + 7) / 8}, {}};
  bytes.values.resize(static_cast<size_t>(bytes.shape[0]));
  for (size_t i = 0; i < bytes.values.size(); ++i) {
    bytes.values[i] = static_cast<uint8_t>(mask.words()[i / 8] >> (i % 8 * 8));
  }
  return bytes;
}

BitMask unpacked(const ByteArray& bytes, int64_t size) {
  BitMask mask = BitMask::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    if ((bytes.values[static_cast<size_t>(i / 8)] >> (i % 8) & 1) != 0) mask.set(i);
  }
  return mask;
}

}  // namespace

StateDict SparsityAlgorithm::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", step_);
  state.set("updates", updates_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (ever_active_[i]) {
      state.set("ever_active/" + parameters_[i]->name(), packed(ever_active_[i]->bits));
    }
    state.set("target_nnz/" + parameters_[i]->name(), target_nnz_[i]);
    state.set("target_sparsity/" + parameters_[i]->name(), target_sparsity_[i]);
  }
  return state;
}

namespace {

void require_shape(const Shape& saved, const Parameter& parameter) {
  if (saved == parameter.shape()) return;
  throw CheckpointError("the sparsity state of '" + parameter.name() + "' has shape " +
                        saved.to_string() + ", the parameter " + parameter.shape().to_string());
}

}  // namespace

Tensor SparsityAlgorithm::saved_array(const StateDict& state, const std::string& prefix,
                                      const Parameter& parameter) {
  const auto& saved = state.get<Tensor>(prefix + "/" + parameter.name());
  require_shape(saved.shape(), parameter);
  return saved.to(Order::RowMajor).clone();
}

void SparsityAlgorithm::require_own(const StateDict& state) const {
  const auto& saved_type = state.get<std::string>("type");
  if (saved_type == type()) return;
  throw CheckpointError("the checkpoint holds the state of sparsity algorithm '" + saved_type +
                        "', the run uses '" + std::string(type()) + "'");
}

void SparsityAlgorithm::load_state_dict(const StateDict& state) {
  require_own(state);
  step_ = state.count("step");
  updates_ = state.count("updates");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (ever_active_[i]) {
      const int64_t numel = parameters_[i]->numel();
      const auto& saved = state.get<ByteArray>("ever_active/" + parameters_[i]->name());
      const bool is_packed = saved.shape == Shape{(numel + 7) / 8};
      // Format 1 of checkpoints has a byte for each position.
      if (!is_packed && saved.shape != parameters_[i]->shape()) {
        throw CheckpointError("the sparsity state of '" + parameters_[i]->name() + "' has shape " +
                              saved.shape.to_string() + ", expected a bit for each of " +
                              std::to_string(numel) + " positions");
      }
      const BitMask bits = is_packed ? unpacked(saved, numel) : BitMask::from_bytes(saved.values);
      ever_active_[i] = {bits, bits.count()};
    }
    const std::string& name = parameters_[i]->name();
    target_nnz_[i] = state.count("target_nnz/" + name, parameters_[i]->numel());
    target_sparsity_[i] = state.number("target_sparsity/" + name, 0.0, 1.0);
  }
}

}  // namespace lacuna
