// Activation functions over arrays of floats, and their derivatives.
#pragma once

#include <span>

namespace lacuna {

enum class Activation {
  ReLU,         ///< max(x, 0)
  GELU,         ///< x Φ(x), Φ the normal distribution's cumulative function
  GELUTanh,     ///< x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, an approximation
  SiLU,         ///< x σ(x)
  Sigmoid,      ///< σ(x) = 1 / (1 + e⁻ˣ)
  Tanh,         ///< tanh x
  SquaredReLU,  ///< max(x, 0)²
};

/// Whether the derivative is computed from the function's output (else from its input).
constexpr bool derives_from_output(Activation kind) {
  return kind == Activation::ReLU || kind == Activation::Sigmoid || kind == Activation::Tanh;
}

/// y[i] = f(x[i]). NaN stays NaN. Finite inputs give finite outputs, except for squares that
/// overflow. y may be x. *Accuracy:* 3e-7 relative to max(1, |y|). *Errors:* ShapeError if lengths
/// differ.
/// *Cost:* one pass; up to one exponential and two divisions an element; several threads when long.
void activate(Activation kind, std::span<const float> x, std::span<float> y);

/// dx[i] = dy[i] f′, from the output or the input (`derives_from_output`). ReLU passes dy where the
/// output is not ≤ 0 (also for NaN, as PyTorch does), SquaredReLU 2 x dy where the input is not. dx
/// may be dy or `saved`.
void activate_gradient(Activation kind, std::span<const float> saved, std::span<const float> dy,
                       std::span<float> dx);

/// y[i] = x[i] if it is not below 0, else slope · x[i]. NaN stays NaN. y may be x. *Errors:*
/// ShapeError if lengths differ. *Cost:* as ReLU.
void leaky_relu(float slope, std::span<const float> x, std::span<float> y);

/// dx[i] = dy[i] if the output is not ≤ 0, else slope · dy[i]. *Requires* slope ≥ 0, so that the
/// output has the input's sign. dx may be dy or `output`.
void leaky_relu_gradient(float slope, std::span<const float> output, std::span<const float> dy,
                         std::span<float> dx);

}  // namespace lacuna
