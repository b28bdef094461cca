// Activation functions and their derivatives in plain C++ on any value type (float, double, and
// complex<double> for derivatives by complex step).
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>

#include "lacuna/framework/kernels/pointwise/activation.hpp"

namespace lacuna::reference {

/// 1 − erf x.
template <class T>
T error_complement(T x) {
  return std::erfc(x);
}

/// erf z = 2/√π e^(−z²) Σ 2ⁿ z^(2n+1) / (1·3···(2n+1)), whose terms do not cancel on the real axis.
/// *Source:* Abramowitz and Stegun, 7.1.6.
inline std::complex<double> error_complement(std::complex<double> z) {
  std::complex<double> term = z, sum = z;
  for (int n = 1; n < 400; ++n) {
    term *= 2.0 * z * z / (2.0 * n + 1.0);
    sum += term;
  }
  return 1.0 - 2.0 * std::numbers::inv_sqrtpi * std::exp(-z * z) * sum;
}

template <class T>
T sigmoid(T x) {
  if (std::real(x) < 0) return std::exp(x) / (T(1) + std::exp(x));
  return T(1) / (T(1) + std::exp(-x));
}

/// Φ(x) and its derivative.
template <class T>
T normal_cdf(T x) {
  return T(0.5) * error_complement(-x / T(std::numbers::sqrt2));
}
template <class T>
T normal_density(T x) {
  return std::exp(x * x * T(-0.5)) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

/// The argument of GELUTanh's sigmoid (½(1 + tanh u) = σ(2u)), and its derivative.
inline constexpr double kGeluSlope = 2.0 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
inline constexpr double kGeluCubic = 0.044715;
template <class T>
T gelu_argument(T x) {
  return T(kGeluSlope) * (x + T(kGeluCubic) * x * x * x);
}
template <class T>
T gelu_argument_derivative(T x) {
  return T(kGeluSlope) * (T(1) + T(3.0 * kGeluCubic) * x * x);
}

template <class T>
T activation(Activation kind, T x) {
  switch (kind) {
    case Activation::ReLU:
      return std::real(x) < 0 ? T(0) : x;
    case Activation::GELU:
      return x * normal_cdf(x);
    case Activation::GELUTanh:
      return x * sigmoid(gelu_argument(x));
    case Activation::SiLU:
      return x * sigmoid(x);
    case Activation::Sigmoid:
      return sigmoid(x);
    case Activation::Tanh:
      return std::tanh(x);
    case Activation::SquaredReLU:
      return std::real(x) < 0 ? T(0) : x * x;
  }
  return x;
}

/// f′, from the output `s` for ReLU, Sigmoid and Tanh, and from the input `s` for the others.
template <class T>
T activation_derivative(Activation kind, T s) {
  switch (kind) {
    case Activation::ReLU:
      return std::real(s) <= 0 ? T(0) : T(1);
    case Activation::GELU:
      return normal_cdf(s) + s * normal_density(s);
    case Activation::GELUTanh: {
      const T p = sigmoid(gelu_argument(s)), rest = sigmoid(-gelu_argument(s));
      return p + s * p * rest * gelu_argument_derivative(s);
    }
    case Activation::SiLU:
      return sigmoid(s) * (T(1) + s * sigmoid(-s));
    case Activation::Sigmoid:
      return s * (T(1) - s);
    case Activation::Tanh:
      return T(1) - s * s;
    case Activation::SquaredReLU:
      return std::real(s) <= 0 ? T(0) : T(2) * s;
  }
  return T(1);
}

template <class T>
void activate(Activation kind, const T* x, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = activation(kind, x[i]);
}

template <class T>
void activate_gradient(Activation kind, const T* saved, const T* dy, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T slope = activation_derivative(kind, saved[i]);
    // A selection: an infinite gradient does not become NaN where the output is zero.
    const bool selects = kind == Activation::ReLU || kind == Activation::SquaredReLU;
    dx[i] = selects && slope == T(0) ? T(0) : dy[i] * slope;
  }
}

template <class T>
void leaky_relu(T slope, const T* x, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = std::real(x[i]) < 0 ? slope * x[i] : x[i];
}

template <class T>
void leaky_relu_gradient(T slope, const T* output, const T* dy, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = std::real(output[i]) <= 0 ? slope * dy[i] : dy[i];
}

}  // namespace lacuna::reference
