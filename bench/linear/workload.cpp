// The operands of the linear benchmark, and the check that everyone computes the same.
#include <cmath>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

Tensor random_tensor(const Shape& shape, std::string_view name) {
  const CounterRng rng(1, name);
  Tensor tensor = Tensor::empty(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.mutable_data()[i] = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
  }
  return tensor;
}

// Relative to the largest possible sum of `terms` products of values below 1.
void expect(const std::string& what, float found, double expected, int64_t terms) {
  const double tolerance = 1e-6 * std::sqrt(static_cast<double>(terms)) + 1e-5;
  if (!(std::abs(found - expected) <= tolerance)) {
    throw Error(what + " is " + std::to_string(found) + ", the reference " +
                std::to_string(expected));
  }
}

}  // namespace

LinearWorkload LinearWorkload::random(int64_t batch, int64_t in, int64_t out, double sparsity) {
  LinearWorkload w{.batch = batch, .in = in, .out = out, .sparsity = sparsity};
  w.x = random_tensor(Shape{batch, in}, "x");
  w.dy = random_tensor(Shape{batch, out}, "dy");
  w.weight = random_tensor(Shape{out, in}, "weight");
  w.bias = random_tensor(Shape{out}, "bias");
  w.mask.resize(static_cast<size_t>(out * in));
  const CounterRng rng(1, "mask");
  for (int64_t i = 0; i < out * in; ++i) {
    const bool kept = rng.uniform(static_cast<uint64_t>(i)) >= sparsity;
    w.mask[static_cast<size_t>(i)] = kept ? 1 : 0;
    if (!kept) w.weight.mutable_data()[i] = 0.0f;
  }
  return w;
}

// A sample of 64 positions of each result; a prime stride walks rows and columns alike.
void check(const std::string& name, LinearContender& contender, const LinearWorkload& w) {
  contender.forward();
  contender.backward();
  const Tensor y = contender.y().to(Order::RowMajor), dx = contender.dx().to(Order::RowMajor);
  const Tensor dw = contender.dw();
  for (int64_t sample = 0; sample < 64; ++sample) {
    const int64_t i = sample * 7919 % w.batch, o = sample * 104729 % w.out;
    const int64_t j = sample * 1299709 % w.in;
    double sum = w.bias.data()[o];
    for (int64_t l = 0; l < w.in; ++l) {
      sum += static_cast<double>(w.x.data()[i * w.in + l]) * w.weight.data()[o * w.in + l];
    }
    expect(name + ": an output", y.data()[i * w.out + o], sum, w.in);
    sum = 0.0;
    for (int64_t l = 0; l < w.out; ++l) {
      sum += static_cast<double>(w.dy.data()[i * w.out + l]) * w.weight.data()[l * w.in + j];
    }
    expect(name + ": an input gradient", dx.data()[i * w.in + j], sum, w.out);
    if (w.mask[static_cast<size_t>(o * w.in + j)] == 0) continue;
    sum = 0.0;
    for (int64_t l = 0; l < w.batch; ++l) {
      sum += static_cast<double>(w.dy.data()[l * w.out + o]) * w.x.data()[l * w.in + j];
    }
    expect(name + ": a weight gradient", dw.data()[o * w.in + j], sum, w.batch);
  }
}

}  // namespace lacuna::bench
