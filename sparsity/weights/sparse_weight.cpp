#include "lacuna/sparsity/weights/sparse_weight.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Above so many positions a bit for each is too much to remember which were ever active.
constexpr int64_t kMostTracked = int64_t{1} << 30;
constexpr const char* kMaster = "shadow";

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

// A parameter that is free and that groups and pattern fit.
ParameterPtr checked(ParameterPtr parameter, std::string_view algorithm, const ScoreGroups& groups,
                     const PatternShape& pattern) {
  groups.require_fit(parameter->name(), parameter->shape());
  pattern.require_fit("parameter '" + parameter->name() + "'", parameter->shape());
  if (!parameter->sparsified_by.empty()) {
    throw StateError("parameter '" + parameter->name() + "' is made sparse by '" +
                     parameter->sparsified_by + "' already; '" + std::string(algorithm) +
                     "' cannot be applied to it too");
  }
  return parameter;
}

}  // namespace

SparseWeight::SparseWeight(ParameterPtr parameter, std::string_view algorithm,
                           const ScoreGroups& groups, const PatternShape& pattern)
    : parameter_(checked(std::move(parameter), algorithm, groups, pattern)),
      selector_(groups, pattern, parameter_->shape()) {
  parameter_->sparsified_by = algorithm;
  if (numel() <= kMostTracked) ever_active_ = EverActive{BitMask::zeros(numel()), 0};
}

SparseWeight::~SparseWeight() {
  stop_watching();
  master_.reset();
  set_lifetime(PatternLifetime::ManySteps);  // nobody changes the mask from now on
  parameter_->sparsified_by.clear();
}

Tensor SparseWeight::magnitudes() const {
  Tensor scores = elements();
  take_magnitudes(scores.mutable_storage());
  return scores;
}

void SparseWeight::set_target(int64_t nnz, double sparsity) {
  target_nnz_ = nnz;
  target_sparsity_ = sparsity;
}

void SparseWeight::set_lifetime(PatternLifetime lifetime) {
  const Pattern& pattern = *parameter_->pattern();
  if (pattern.lifetime() != lifetime) parameter_->set_pattern(pattern.with_lifetime(lifetime));
}

bool SparseWeight::has_lost_pattern(const MaskSet& present) const {
  if (!selector_.pattern().is_structured() || known_.lock() == parameter_->pattern()) return false;
  return selector_.fit(present) == MaskSelector::Fit::None;
}

MaskUpdate SparseWeight::note(const MaskSet& mask, const MaskChange& change) {
  if (mask.is_known_to_have(selector_.pattern())) known_ = parameter_->pattern();
  if (ever_active_) {
    const auto see = [this](int64_t word, uint64_t bits) {
      ever_active_->count += ever_active_->bits.set_in_word(word, bits);
    };
    if (!mask.has_bits()) {
      mask.positions().for_each_word(see);
    } else {
      const std::span<const uint64_t> words = mask.bits().words();
      for (size_t w = 0; w < words.size(); ++w) see(static_cast<int64_t>(w), words[w]);
    }
  }
  const auto of_all = static_cast<double>(std::max<int64_t>(numel(), 1));
  MaskUpdate update{.parameter = name(),
                    .target_sparsity = target_sparsity_,
                    .actual_sparsity = 1.0 - static_cast<double>(nnz()) / of_all,
                    .nnz = nnz(),
                    .dropped = change.dropped,
                    .grown = change.grown,
                    .dead_rows = change.dead.rows,
                    .dead_columns = change.dead.columns,
                    .layout = std::string(parameter_->pattern()->layout().name())};
  update.churn =
      static_cast<double>(change.grown) / static_cast<double>(std::max<int64_t>(nnz(), 1));
  if (ever_active_) update.ever_active = static_cast<double>(ever_active_->count) / of_all;
  if (nnz() == 0 && change.dropped > 0 && target_nnz_ > 0) {
    update.messages.push_back(
        fmt::format("'{}' has lost all of its nonzeros (target: {}), so its outputs are zero from "
                    "now on",
                    name(), target_nnz_));
  }
  return update;
}

void SparseWeight::watch_gradient(GradientRoute route) {
  gradient_ = std::make_shared<DenseGradient>(route, parameter_->collector());
  parameter_->set_gradient_tap(gradient_);
}

void SparseWeight::stop_watching() {
  if (gradient_ == nullptr) return;
  parameter_->set_gradient_tap(nullptr);
  gradient_.reset();
}

DenseGradient* SparseWeight::gradient() const {
  return gradient_ != nullptr && gradient_->is_known() ? gradient_.get() : nullptr;
}

void SparseWeight::keep_master(MasterWeight::Remains remains) {
  if (parameter_->sparse_gradient) {
    throw ConfigError(
        fmt::format("{} needs the whole gradient of '{}' at each step, but it is sparse: remove "
                    "sparse_gradient from its layer, or the parameter from param_filter",
                    parameter_->sparsified_by, name()));
  }
  master_.emplace(*parameter_, remains);
}

void SparseWeight::add_to(StateDict& state) const {
  if (ever_active_) state.set("ever_active/" + name(), packed(ever_active_->bits));
  state.set("target_nnz/" + name(), target_nnz_);
  state.set("target_sparsity/" + name(), target_sparsity_);
  if (master_) state.set(std::string(kMaster) + "/" + name(), master_->values().clone());
}

void SparseWeight::load(const StateDict& state) {
  if (ever_active_) load_ever_active(state);
  target_nnz_ = state.count("target_nnz/" + name(), numel());
  target_sparsity_ = state.number("target_sparsity/" + name(), 0.0, 1.0);
  if (master_) master_->restore(saved_array(state, kMaster, *parameter_));
}

void SparseWeight::load_ever_active(const StateDict& state) {
  const auto& saved = state.get<ByteArray>("ever_active/" + name());
  const bool is_packed = saved.shape == Shape{(numel() + 7) / 8};
  // Format 1 of checkpoints has a byte for each position.
  if (!is_packed && saved.shape != shape()) {
    throw CheckpointError(fmt::format(
        "the sparsity state of '{}' has shape {}, expected a bit for each of {} positions", name(),
        saved.shape.to_string(), numel()));
  }
  const BitMask bits = is_packed ? unpacked(saved, numel()) : BitMask::from_bytes(saved.values);
  ever_active_ = {bits, bits.count()};
}

Tensor saved_array(const StateDict& state, const std::string& key, const Parameter& parameter) {
  const auto& saved = state.get<Tensor>(key + "/" + parameter.name());
  if (saved.shape() != parameter.shape()) {
    throw CheckpointError("the sparsity state of '" + parameter.name() + "' has shape " +
                          saved.shape().to_string() + ", the parameter " +
                          parameter.shape().to_string());
  }
  return saved.to(Order::RowMajor).clone();
}

}  // namespace lacuna
