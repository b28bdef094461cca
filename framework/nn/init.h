// Weight initialization as PyTorch defines it.
#pragma once

#include <cstdint>
#include <limits>
#include <numbers>
#include <string_view>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/param/initializer.h"

namespace lacuna {

struct KaimingOptions {
  int64_t fan_in = 0;                 ///< inputs of one output; 0 gives zeros
  double gain = std::numbers::sqrt2;  ///< √2 for ReLU, 1 for a linear layer
};

/// Uniform within ± gain √(3 / fan_in). *Source:* He et al., arXiv:1502.01852.
Initializer kaiming_uniform(const KaimingOptions& options);
/// Normal with standard deviation gain / √fan_in. *Source:* the same.
Initializer kaiming_normal(const KaimingOptions& options);

struct XavierOptions {
  int64_t fan_in = 0;
  int64_t fan_out = 0;
  double gain = 1.0;
};

/// Uniform within ± gain √(6 / (fan_in + fan_out)). *Source:* Glorot and Bengio, AISTATS 2010.
Initializer xavier_uniform(const XavierOptions& options);
/// Normal with standard deviation gain √(2 / (fan_in + fan_out)). *Source:* the same.
Initializer xavier_normal(const XavierOptions& options);

/// Uniform within ± 1 / √fan_in: the distribution of weight and bias in PyTorch's Linear (there
/// kaiming_uniform with a = √5).
Initializer default_linear(int64_t fan_in);

/// How a layer draws its weight.
enum class WeightInit {
  Default,         ///< default_linear
  KaimingUniform,  ///< with the gain of ReLU
  KaimingNormal,   ///< with the gain of ReLU
  XavierUniform,
  XavierNormal,
  Zeros,
  Normal,           ///< with a given standard deviation
  TruncatedNormal,  ///< the same, drawn within two standard deviations
};

/// How a layer draws its weight, with its parameter.
struct WeightDraw {
  WeightDraw(WeightInit way = WeightInit::Default) : type(way) {}  // NOLINT: a way is a draw
  WeightDraw(WeightInit way, double deviation) : type(way), std(deviation) {}

  WeightInit type;
  double std = 0.02;  ///< only for Normal and TruncatedNormal

  /// Whether the layer's bias starts at zero: if the weight does, or if it is drawn with a given
  /// standard deviation, as in GPT-2, BERT and ViT.
  bool zero_bias() const;
  friend bool operator==(const WeightDraw&, const WeightDraw&) = default;
};

/// The number of inputs of one output that an initialization uses.
///
/// A sparse layer that is drawn like a dense one starts with outputs that are too small by √(1 /
/// density), at 95 % by √20; the factors of all layers multiply. *Source:* Evci et al., "Gradient
/// flow in sparse neural networks and how lottery tickets win", AAAI 2022 (arXiv:2010.03533), which
/// counts the nonzeros of each output, as `nonzeros()` does.
class FanIn {
 public:
  /// This many, for any mask; 0: all inputs of the layer.
  FanIn(int64_t inputs = 0) : inputs_(inputs) {}  // NOLINT: a number is a fan-in
  /// All inputs of the layer, for any mask.
  static FanIn all() { return 0; }
  /// The inputs that the first mask leaves for each output: all if a layer starts dense, or if an
  /// algorithm trains a dense master, which is drawn before there is a mask.
  static FanIn nonzeros() { return kNonzeros; }

  bool counts_nonzeros() const { return inputs_ == kNonzeros; }
  bool is_number() const { return inputs_ > 0; }
  /// For a layer with this many inputs per output (Fans::in), all of them present. *Errors:*
  /// ConfigError below 0.
  int64_t inputs(int64_t in_features) const;

 private:
  static constexpr int64_t kNonzeros = std::numeric_limits<int64_t>::min();
  int64_t inputs_;
};

/// Connections of one output and of one input of a weight, as PyTorch counts them: for a matrix
/// [out, in] these are in and out; for a convolution's [out, in / groups, kh, kw] in / groups · kh
/// · kw and out · kh · kw.
struct Fans {
  int64_t in = 0, out = 0;
};
/// *Errors:* ShapeError below rank 2.
Fans fans_of(const Shape& weight);

/// The initializer of a weight [fan_out, fan_in], or of one with these fans.
Initializer make_initializer(const WeightDraw& init, int64_t fan_in, int64_t fan_out);
/// The initializer of a weight that uses the nonzeros of each row as fan_in and, if `init` needs
/// fan_out, the nonzeros of each column, or of each input channel at all taps; while the weight is
/// dense, all positions count. A given standard deviation grows in the same way, by √(all /
/// nonzeros).
Initializer make_initializer_for_nonzeros(const WeightDraw& init, int64_t fan_in, int64_t fan_out);

/// The value of `key`: default, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal or
/// zeros, or a map {type: normal | truncated_normal, std}; `default` if it is absent. *Errors:*
/// ConfigError with the nearest name, and on a std below 0.
WeightDraw read_weight_init(const Config& options, std::string_view key);
/// The value of `key`: all, nonzeros or a number of inputs (0: all); `all` when it is absent.
/// *Errors:* ConfigError.
FanIn read_fan_in(const Config& options, std::string_view key);

}  // namespace lacuna
