// SparseWeight: one parameter under a sparsity algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/weights/dense_gradient.h"
#include "lacuna/sparsity/weights/mask_installer.h"
#include "lacuna/sparsity/weights/master_weight.h"
#include "lacuna/sparsity/weights/plan.h"

namespace lacuna {

/// A parameter that an algorithm manages, with the algorithm's state for it: its target, its
/// statistics, its dense gradient if one was requested, and its dense master if it has one. While
/// it exists, no other algorithm can manage the parameter; its destructor releases it.
class SparseWeight {
 public:
  /// `algorithm` is its type, for messages. *Errors:* StateError if another algorithm manages the
  /// parameter; ConfigError and ShapeError if groups or pattern do not fit it.
  SparseWeight(ParameterPtr parameter, std::string_view algorithm, const ScoreGroups& groups,
               const PatternShape& pattern);
  ~SparseWeight();
  SparseWeight(const SparseWeight&) = delete;
  SparseWeight& operator=(const SparseWeight&) = delete;

  Parameter& parameter() { return *parameter_; }
  const Parameter& parameter() const { return *parameter_; }
  const ParameterPtr& pointer() const { return parameter_; }
  const std::string& name() const { return parameter_->name(); }
  const Shape& shape() const { return parameter_->shape(); }
  int64_t numel() const { return parameter_->numel(); }
  int64_t nnz() const { return parameter_->pattern()->nnz(); }

  /// Selects the positions that are kept, dropped and grown.
  const MaskSelector& selector() const { return selector_; }
  /// Whether the current positions (`present`) are not of the selector's pattern. Without rows or
  /// columns, as after `lacuna shrink`, a mask may have lost it. *Cost:* O(nnz), and nothing for a
  /// mask whose maker states the pattern.
  bool has_lost_pattern(const MaskSet& present) const;
  /// The current positions.
  MaskSet mask() const { return MaskSet(parameter_->pattern()); }
  /// Its values at the current positions, ascending by flat index.
  Tensor elements() const { return parameter_->compacted(parameter_->values()); }
  /// |w| at the current positions, ascending by flat index: scores of `mask()`.
  Tensor magnitudes() const;

  /// Targets of the last update; the sparsity in [0, 1], the nonzeros in whole units and groups.
  double target_sparsity() const { return target_sparsity_; }
  int64_t target_nnz() const { return target_nnz_; }
  void set_target(int64_t nnz, double sparsity);

  /// Sets how long the masks are kept, including the current one.
  void set_lifetime(PatternLifetime lifetime);
  /// Counts an installed mask, and returns the changes to the parameter.
  MaskUpdate note(const MaskSet& mask, const MaskChange& change);

  /// Collects the dense gradient of every backward from now on.
  void watch_gradient(GradientRoute route);
  void stop_watching();
  bool is_watched() const { return gradient_ != nullptr; }
  /// The dense gradient; null if none is collected, or none has arrived yet.
  DenseGradient* gradient() const;

  /// Keeps a dense master from now on, which starts as the whole weight.
  void keep_master(MasterWeight::Remains remains);
  /// Null if there is none.
  MasterWeight* master() { return master_ ? &*master_ : nullptr; }
  const MasterWeight* master() const { return master_ ? &*master_ : nullptr; }

  /// Writes "<key>/<name>" for its target, statistics and master.
  void add_to(StateDict& state) const;
  /// *Errors:* CheckpointError.
  void load(const StateDict& state);

 private:
  void load_ever_active(const StateDict& state);

  /// The positions that have ever been in a mask.
  struct EverActive {
    BitMask bits;
    int64_t count = 0;
  };

  ParameterPtr parameter_;
  MaskSelector selector_;
  int64_t target_nnz_ = 0;
  double target_sparsity_ = 0.0;
  std::optional<EverActive> ever_active_;  // none for a parameter that is too large
  std::weak_ptr<const Pattern> known_;     // a pattern whose mask is known to fit the selector
  std::shared_ptr<DenseGradient> gradient_;
  std::optional<MasterWeight> master_;
};

/// The array in a parameter's shape that a saved state has as "<key>/<name>". *Errors:*
/// CheckpointError if it is absent or has another shape.
Tensor saved_array(const StateDict& state, const std::string& key, const Parameter& parameter);

}  // namespace lacuna
