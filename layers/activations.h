// Activation functions as layers.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

// *Shapes:* any, kept, unless a class documents otherwise. No parameters.

/// Base of the activations that have no options.
class PlainActivation : public Module {
 public:
  struct Options {};

  std::string_view type() const final { return type_; }

 protected:
  using Function = Variable (*)(const Variable&);
  /// `type` is a literal.
  PlainActivation(std::string_view type, Function function) : type_(type), function_(function) {}
  Variable forward(const Variable& input) final { return function_(input); }

 private:
  std::string_view type_;
  Function function_;
};

/// y = max(x, 0).
class ReLU final : public PlainActivation {
 public:
  explicit ReLU(const Options& = {});
};

/// y = max(x, 0)².
class SquaredReLU final : public PlainActivation {
 public:
  explicit SquaredReLU(const Options& = {});
};

/// y = x σ(x).
class SiLU final : public PlainActivation {
 public:
  explicit SiLU(const Options& = {});
};

/// y = 1 / (1 + e⁻ˣ).
class Sigmoid final : public PlainActivation {
 public:
  explicit Sigmoid(const Options& = {});
};

/// y = tanh x.
class Tanh final : public PlainActivation {
 public:
  explicit Tanh(const Options& = {});
};

/// y = silu(gate) · up of two concatenated branches, as from a Parallel of two Linear. *Shapes:*
/// [..., 2 features] → [..., features].
class SwiGLU final : public PlainActivation {
 public:
  explicit SwiGLU(const Options& = {});
  Shape output_shape(const Shape& input) const override;
};

/// y = x where x ≥ 0, else negative_slope · x.
class LeakyReLU final : public Module {
 public:
  struct Options {
    float negative_slope = 0.01f;  ///< a finite number of at least 0
  };

  LeakyReLU() : LeakyReLU(Options()) {}
  /// *Errors:* ConfigError on a slope out of range.
  explicit LeakyReLU(const Options& options);

  std::string_view type() const override { return "leaky_relu"; }
  const Options& options() const { return options_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

/// y = x Φ(x) with Φ the normal distribution's cumulative function.
class GELU final : public Module {
 public:
  enum class Approximate {
    None,  ///< by the error function
    Tanh,  ///< ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  };
  struct Options {
    Approximate approximate = Approximate::None;
  };

  GELU() : GELU(Options()) {}
  explicit GELU(const Options& options) : options_(options) {}

  std::string_view type() const override { return "gelu"; }
  const Options& options() const { return options_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
