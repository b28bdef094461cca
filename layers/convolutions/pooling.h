// Pooling layers. They take images [batch, channels, height, width], and sequences [batch,
// channels, length] as images of height 1: kernels, strides and paddings [1, n].
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The largest value of each window. *Shapes:* [batch, channels, height, width] → [batch, channels,
/// …], or [batch, channels, length] → [batch, channels, …].
class MaxPool2d final : public Module {
 public:
  struct Options {
    Extent kernel{2, 2};
    Extent stride{2, 2};
    Extent padding{0, 0};  ///< at most half of the kernel
    Extent dilation{1, 1};
  };

  /// Options are checked by output_shape and forward. *Errors:* theirs: ShapeError on a window that
  /// does not fit, a padding of more than half the kernel, or a stride below 1.
  explicit MaxPool2d(const Options& options) : options_(options) {}

  std::string_view type() const override { return "max_pool"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

/// The mean of each window. *Shapes:* as MaxPool2d.
class AvgPool2d final : public Module {
 public:
  struct Options {
    Extent kernel{2, 2};
    Extent stride{2, 2};
    Extent padding{0, 0};           ///< at most half of the kernel
    bool count_include_pad = true;  ///< borders also divide by the kernel's size
  };

  /// Options are checked by output_shape and forward. *Errors:* theirs: ShapeError on a window that
  /// does not fit, a padding of more than half the kernel, or a stride below 1.
  explicit AvgPool2d(const Options& options) : options_(options) {}

  std::string_view type() const override { return "avg_pool"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

/// The mean of each channel. *Shapes:* [batch, channels, height, width], or [batch, channels,
/// length], → [batch, channels].
class GlobalAveragePool final : public Module {
 public:
  struct Options {};

  explicit GlobalAveragePool(const Options& = {}) {}

  std::string_view type() const override { return "global_average_pool"; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;
};

/// Every stride-th row and column, the channels filled up with zeros on both sides: a shortcut
/// without weights (ResNet's option A). *Shapes:* [batch, c, height, width] → [batch, channels,
/// ⌈height/stride⌉, ⌈width/stride⌉].
class SubsamplePad final : public Module {
 public:
  struct Options {
    int64_t channels = 0;
    Extent stride{2, 2};
    /// Channels of zeros before the input's, at most the number of missing channels (ShapeError
    /// from forward); absent: half of them.
    std::optional<int64_t> before = std::nullopt;
  };

  /// Options are checked by output_shape and forward. *Errors:* theirs: ShapeError on a stride
  /// below 1, or on fewer channels than the input has.
  explicit SubsamplePad(const Options& options) : options_(options) {}

  std::string_view type() const override { return "subsample_pad"; }
  const Options& options() const { return options_; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
