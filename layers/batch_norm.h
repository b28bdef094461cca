// The BatchNorm layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/parameter_versions.h"

namespace lacuna {

/// y = (x − mean) / √(variance + eps) · weight + bias, by channel: in training with the moments of
/// the batch, which update the running moments; in evaluation, or frozen, with the running moments.
/// *Shapes:* [batch, channels], [batch, channels, length] or [batch, channels, height, width];
/// parameters `weight` and `bias` [channels], buffers `running_mean` and `running_var` [channels].
class BatchNorm final : public Module, public BatchUser {
 public:
  struct Options {
    int64_t channels = 0;
    double eps = 1e-5;                ///< added to the variance
    double momentum = 0.1;            ///< weight of a batch's moments in the running ones
    bool affine = true;               ///< with weight and bias; else 1 and 0
    bool track_running_stats = true;  ///< if false, evaluation uses the batch's moments too
  };

  /// *Errors:* ConfigError unless channels is at least 1, eps above 0 and momentum in [0, 1].
  explicit BatchNorm(const Options& options);

  std::string_view type() const override { return "batch_norm"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;
  /// Whether training normalizes by the moments of the batch, which requires more than one value
  /// per channel.
  bool needs_batch() const override { return trainable() || running_mean_ == nullptr; }
  /// Null if the layer is not affine.
  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }
  /// *Requires* running moments.
  const Tensor& running_mean() const { return *running_mean_; }
  const Tensor& running_var() const { return *running_var_; }

  /// y = scale x + shift by channel: the function of the layer in evaluation, in double. Empty if
  /// it normalizes by the moments of each batch.
  struct Affine {
    std::vector<double> scale, shift;
  };
  std::optional<Affine> affine() const;
  /// States that the previous layer includes this function: from now on the output is the input.
  /// For inference only. *Errors:* StateError from training, saving and loading it, and from its
  /// forward pass after a change of weight or bias.
  void mark_folded();
  bool is_folded() const { return is_folded_; }
  bool mixes_examples() const override { return !is_folded_ && !affine(); }

 protected:
  /// *Errors:* ShapeError if a channel has only one value, and the batch's moments are used;
  /// StateError if a running variance is negative. Also StateError in training if a module that
  /// runs its shards by itself contains the layer, because the layer then receives only one shard
  /// of a batch.
  Variable forward(const Variable& input) override;
  /// In training, the shards of a batch are normalized together (nn/sharded_batch.h: NormScope).
  std::vector<Variable> forward_in_shards(std::span<const Variable> inputs) override;
  StateDict extra_state() const override;

 private:
  void require_variance() const;
  void require_values(double values, const Shape& input) const;
  void learn(const ChannelMoments& moments, double values);
  bool is_learning() const { return training() && trainable(); }
  bool uses_batch() const { return is_learning() || running_mean_ == nullptr; }

  Options options_;
  ParameterPtr weight_, bias_;
  Tensor* running_mean_ = nullptr;
  Tensor* running_var_ = nullptr;
  bool is_folded_ = false;
  ParameterVersions folded_;
};

}  // namespace lacuna
