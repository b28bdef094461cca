// The check that everyone computes the same.
#include <cmath>

#include "conv/contender.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::bench {
namespace {

struct Sum {
  double value = 0.0;
  int64_t terms = 0;
  void add(float a, float b) {
    value += static_cast<double>(a) * b;
    ++terms;
  }
};

// A sum of products of values below 1: rounding errors grow with the partial sums, which reach some
// √terms. Winograd's transformations make them ten times as large; a product too many or too few is
// off by more than ten times that.
void expect(const std::string& what, float found, const Sum& expected) {
  const double tolerance = 3e-5 * std::sqrt(static_cast<double>(expected.terms)) + 1e-5;
  if (!(std::abs(found - expected.value) <= tolerance)) {
    throw Error(what + " is " + std::to_string(found) + ", the reference " +
                std::to_string(expected.value));
  }
}

// Where things lie in row-major images and weights.
struct Reference {
  const ConvolutionWorkload& w;
  const ConvolutionShape& s = w.shape;
  Extent out = s.output();
  const float* x = w.x.in(Order::RowMajor).data();
  const float* dy = w.dy.in(Order::RowMajor).data();
  const float* weight = w.weight.data();

  int64_t x_at(int64_t n, int64_t c, int64_t row, int64_t column) const {
    return ((n * s.in_channels + c) * s.image.height + row) * s.image.width + column;
  }
  int64_t y_at(int64_t n, int64_t o, int64_t row, int64_t column) const {
    return ((n * s.out_channels + o) * out.height + row) * out.width + column;
  }
  int64_t weight_at(int64_t o, int64_t c, int64_t i, int64_t j) const {
    return ((o * s.in_channels + c) * s.window.kernel.height + i) * s.window.kernel.width + j;
  }
  // Calls visit(tap row, tap column, input row, input column) for the taps of an output pixel.
  template <class Visit>
  void taps(int64_t row, int64_t column, Visit&& visit) const {
    for (int64_t i = 0; i < s.window.kernel.height; ++i) {
      for (int64_t j = 0; j < s.window.kernel.width; ++j) {
        const int64_t r = row * s.window.stride.height + i - s.window.padding.height;
        const int64_t q = column * s.window.stride.width + j - s.window.padding.width;
        if (r < 0 || q < 0 || r >= s.image.height || q >= s.image.width) continue;
        visit(i, j, r, q);
      }
    }
  }

  Sum y_of(int64_t n, int64_t o, int64_t row, int64_t column) const {
    Sum sum;
    taps(row, column, [&](int64_t i, int64_t j, int64_t r, int64_t q) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        sum.add(x[x_at(n, c, r, q)], weight[weight_at(o, c, i, j)]);
      }
    });
    return sum;
  }
  Sum dx_of(int64_t n, int64_t c, int64_t row, int64_t column) const {
    Sum sum;
    for (int64_t p = 0; p < out.height; ++p) {
      for (int64_t q = 0; q < out.width; ++q) {
        taps(p, q, [&](int64_t i, int64_t j, int64_t r, int64_t k) {
          if (r != row || k != column) return;
          for (int64_t o = 0; o < s.out_channels; ++o) {
            sum.add(dy[y_at(n, o, p, q)], weight[weight_at(o, c, i, j)]);
          }
        });
      }
    }
    return sum;
  }
  Sum dw_of(int64_t o, int64_t c, int64_t tap_row, int64_t tap_column) const {
    Sum sum;
    for (int64_t p = 0; p < out.height; ++p) {
      for (int64_t q = 0; q < out.width; ++q) {
        const int64_t r = p * s.window.stride.height + tap_row - s.window.padding.height;
        const int64_t k = q * s.window.stride.width + tap_column - s.window.padding.width;
        if (r < 0 || k < 0 || r >= s.image.height || k >= s.image.width) continue;
        for (int64_t n = 0; n < s.batch; ++n) sum.add(dy[y_at(n, o, p, q)], x[x_at(n, c, r, k)]);
      }
    }
    return sum;
  }
};

// A row or column of the sample: the borders, which are special, come in half of them.
int64_t place(int64_t sample, int64_t size) {
  if (sample % 4 == 0) return 0;
  if (sample % 4 == 1) return size - 1;
  return sample * 7919 % size;
}

}  // namespace

// 64 positions of each gradient and output; prime strides walk all dimensions alike.
void check(const std::string& name, ConvolutionContender& contender, const ConvolutionWorkload& w) {
  contender.change_weights();
  for (const Product product : kProducts) contender.run(product);
  const Tensor y = contender.y(), dx = contender.dx(), dw = contender.dw();
  const Reference reference{.w = w};
  const ConvolutionShape& s = w.shape;
  const Extent out = s.output();
  for (int64_t sample = 0; sample < 64; ++sample) {
    const int64_t n = sample * 15485863 % s.batch, o = sample * 104729 % s.out_channels;
    const int64_t c = sample * 1299709 % s.in_channels;
    const int64_t p = place(sample, out.height), q = place(sample / 4, out.width);
    expect(name + ": an output", y.data()[reference.y_at(n, o, p, q)], reference.y_of(n, o, p, q));
    const int64_t r = place(sample, s.image.height), k = place(sample / 4, s.image.width);
    expect(name + ": an input gradient", dx.data()[reference.x_at(n, c, r, k)],
           reference.dx_of(n, c, r, k));
  }
  int64_t number = 0;
  w.mask.for_each([&](int64_t position) {
    if (number++ % (w.nnz / 64 + 1) != 0) return;
    const int64_t taps = s.taps(), width = s.window.kernel.width;
    const int64_t tap = position % taps, c = position / taps % s.in_channels;
    expect(name + ": a weight gradient", dw.data()[position],
           reference.dw_of(position / taps / s.in_channels, c, tap / width, tap % width));
  });
}

}  // namespace lacuna::bench
