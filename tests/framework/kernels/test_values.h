// Deterministic arrays for the tests of kernels and operations.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::test {

using Complex = std::complex<double>;

/// Normal values times `spread`, a function of the name.
inline std::vector<float> normal_values(std::string_view name, int64_t count, double spread = 1.0) {
  const CounterRng rng(7, name);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(spread * rng.normal(i));
  return values;
}

inline Tensor normal_tensor(std::string_view name, const Shape& shape, double spread = 1.0) {
  return Tensor::from(shape, normal_values(name, shape.numel(), spread));
}

template <class T>
std::vector<T> convert(const std::vector<float>& values) {
  return std::vector<T>(values.begin(), values.end());
}

/// Lengths around every vector width, with odd and prime ones, and one of many vectors.
inline std::vector<int64_t> sizes() {
  std::vector<int64_t> all;
  for (int64_t n = 0; n <= 70; ++n) all.push_back(n);
  all.push_back(1000);
  return all;
}

/// Largest |a − b| / max(1, |b|).
template <class A, class B>
double largest_error(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double expected = std::real(b[i]), error = std::abs(std::real(a[i]) - expected);
    if (!(error >= 0.0)) return INFINITY;
    largest = std::max(largest, error / std::max(1.0, std::abs(expected)));
  }
  return largest;
}

/// ∂ Σ_j dy_j f(x)_j / ∂x_i for all i by complex step, exact to rounding: f maps a vector<Complex>
/// to one. *Source:* Squire and Trapp, SIAM Review 40 (1998).
template <class Function>
std::vector<double> complex_step(const Function& f, const std::vector<Complex>& x,
                                 const std::vector<double>& dy) {
  constexpr double kStep = 1e-30;
  std::vector<double> gradient;
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<Complex> moved = x;
    moved[i] += Complex(0.0, kStep);
    const std::vector<Complex> y = f(moved);
    double total = 0.0;
    for (size_t j = 0; j < y.size(); ++j) total += dy[j] * y[j].imag() / kStep;
    gradient.push_back(total);
  }
  return gradient;
}

}  // namespace lacuna::test
