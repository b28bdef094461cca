// The check that everyone computes the same.
#include <cmath>

#include "lacuna/framework/core/error.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

// A sum of `terms` products of values below 1: rounding errors grow with the partial sums, which
// reach some √terms. A product too many or too few is off by a thousand times as much.
void expect(const std::string& what, float found, double expected, int64_t terms) {
  const double tolerance = 3e-6 * std::sqrt(static_cast<double>(terms)) + 1e-5;
  if (!(std::abs(found - expected) <= tolerance)) {
    throw Error(what + " is " + std::to_string(found) + ", the reference " +
                std::to_string(expected));
  }
}

// Σ a[first_a + l · stride_a] · b[first_b + l · stride_b].
double dot(const Tensor& a, int64_t first_a, int64_t stride_a, const Tensor& b, int64_t first_b,
           int64_t stride_b, int64_t terms) {
  double sum = 0.0;
  for (int64_t l = 0; l < terms; ++l) {
    sum += static_cast<double>(a.data()[first_a + l * stride_a]) * b.data()[first_b + l * stride_b];
  }
  return sum;
}

}  // namespace

// 64 positions of each result; prime strides walk rows and columns alike.
void check(const std::string& name, LinearContender& contender, const LinearWorkload& w) {
  contender.change_weights();
  contender.forward();
  contender.backward();
  const Tensor y = contender.y().to(Order::RowMajor), dx = contender.dx().to(Order::RowMajor);
  const Tensor dw = contender.dw();
  for (int64_t sample = 0; sample < 64; ++sample) {
    const int64_t i = sample * 7919 % w.batch, o = sample * 104729 % w.out;
    const int64_t j = sample * 1299709 % w.in;
    expect(name + ": an output", y.data()[i * w.out + o],
           w.bias.data()[o] + dot(w.x, i * w.in, 1, w.weight, o * w.in, 1, w.in), w.in);
    const bool is_kept = w.kept.size() == 0 || w.kept.test(i * w.in + j);
    expect(name + ": an input gradient", dx.data()[i * w.in + j],
           is_kept ? dot(w.dy, i * w.out, 1, w.weight, j, w.in, w.out) : 0.0, w.out);
  }
  int64_t place = 0;
  w.mask.for_each([&](int64_t position) {
    if (place++ % (w.nnz / 64 + 1) != 0) return;
    const int64_t o = position / w.in, j = position % w.in;
    expect(name + ": a weight gradient", dw.data()[position],
           dot(w.dy, o, w.out, w.x, j, w.in, w.batch), w.batch);
  });
}

}  // namespace lacuna::bench
