// The check that everyone computes the same: whole passes of a few tokens, and the gradients of a
// few hidden units' weights, in double precision.
#include <cmath>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "mlp/contender.h"

namespace lacuna::bench {
namespace {

using Doubles = std::vector<double>;

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_slope(double x) {
  constexpr double kDensity = 0.3989422804014327;  // 1/√(2π)
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * kDensity * std::exp(-0.5 * x * x);
}

// A sum with the root of its terms' squares, which its rounding errors are in proportion to.
struct Sum {
  double value = 0.0, squares = 0.0;
  void add(double term) {
    value += term;
    squares += term * term;
  }
};

void expect(const std::string& what, float found, const Sum& expected) {
  const double tolerance = 3e-5 * std::sqrt(expected.squares) + 1e-7;
  if (!(std::abs(found - expected.value) <= tolerance)) {
    throw Error(what + " is " + std::to_string(found) + ", the reference " +
                std::to_string(expected.value));
  }
}

Doubles row(const Tensor& t, int64_t i) {
  const int64_t columns = t.shape()[1];
  return Doubles(t.data() + i * columns, t.data() + (i + 1) * columns);
}
Doubles column(const Tensor& t, int64_t j) {
  Doubles values;
  for (int64_t i = 0; i < t.shape()[0]; ++i) values.push_back(t.data()[i * t.shape()[1] + j]);
  return values;
}

// bias[i] + a · b
Sum dot(const Doubles& a, const Doubles& b, const Tensor& bias = {}, int64_t i = 0) {
  Sum sum;
  if (bias.defined()) sum.add(bias.data()[i]);
  for (size_t k = 0; k < a.size(); ++k) sum.add(a[k] * b[k]);
  return sum;
}

struct Reference {
  const MlpOperands& operands;
  const MlpWeights weights, gradients;
  const Tensor y, dx;

  void check_token(const std::string& name, int64_t i) const {
    const Doubles x = row(operands.x, i), dy = row(operands.dy, i);
    Doubles hidden, d_hidden;
    for (int64_t h = 0; h < weights.up.shape()[0]; ++h) {
      const double before = dot(x, row(weights.up, h), weights.up_bias, h).value;
      hidden.push_back(gelu(before));
      d_hidden.push_back(gelu_slope(before) * dot(dy, column(weights.down, h)).value);
    }
    const int64_t features = operands.x.shape()[1];
    for (int64_t sample = 0; sample < 16; ++sample) {
      const int64_t j = sample * 7919 % features;
      expect(name + ": an output", y.data()[i * features + j],
             dot(hidden, row(weights.down, j), weights.down_bias, j));
      expect(name + ": an input gradient", dx.data()[i * features + j],
             dot(d_hidden, column(weights.up, j)));
    }
  }

  void check_hidden_unit(const std::string& name, int64_t h) const {
    const Doubles up = row(weights.up, h), down = column(weights.down, h);
    Doubles hidden, d_hidden;  // of all tokens
    for (int64_t i = 0; i < operands.x.shape()[0]; ++i) {
      const double before = dot(row(operands.x, i), up, weights.up_bias, h).value;
      hidden.push_back(gelu(before));
      d_hidden.push_back(gelu_slope(before) * dot(row(operands.dy, i), down).value);
    }
    const int64_t features = operands.x.shape()[1], units = weights.up.shape()[0];
    for (int64_t j = h % 7; j < features; j += 7) {
      if (up[static_cast<size_t>(j)] != 0.0) {
        expect(name + ": a gradient of the first weight", gradients.up.data()[h * features + j],
               dot(d_hidden, column(operands.x, j)));
      }
      if (down[static_cast<size_t>(j)] != 0.0) {
        expect(name + ": a gradient of the second weight", gradients.down.data()[j * units + h],
               dot(hidden, column(operands.dy, j)));
      }
    }
  }
};

}  // namespace

void check(const std::string& name, MlpContender& contender, const MlpOperands& operands) {
  contender.change_weights();
  contender.forward(operands.x);
  contender.backward(operands.dy);
  const Reference reference{.operands = operands,
                            .weights = contender.weights(),
                            .gradients = contender.gradients(),
                            .y = contender.y(),
                            .dx = contender.dx()};
  const int64_t tokens = operands.x.shape()[0], units = reference.weights.up.shape()[0];
  for (const int64_t token : {int64_t{0}, tokens - 1}) reference.check_token(name, token);
  for (const int64_t unit : {int64_t{1}, units / 2, units - 1}) {
    reference.check_hidden_unit(name, unit);
  }
}

}  // namespace lacuna::bench
