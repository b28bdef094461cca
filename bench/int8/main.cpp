// bench_int8: a linear layer in int8 with groups of 1 × 4, next to float32 csr, float32 of the same
// positions, and dense products in float32 and int8; then N:M patterns in groups of rows, and
// blocks. usage: bench_int8 [IN OUT BATCH] | --tiny
//
// Times are of one thread, medians of contenders that take turns. Before anything is timed, int8 is
// compared with the sums of integers.
#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "lacuna/framework/kernels/pointwise/activation.hpp"
#include "lacuna/framework/layouts/pattern.h"

#if LACUNA_HAVE_DNNL
#include <dnnl.h>
#endif

namespace lacuna::bench {
namespace {

struct Size {
  int64_t in = 1024, out = 1024, batch = 128;
  int rounds = 11;
};

Tensor uniform(const Shape& shape, const std::string& name) {
  const CounterRng rng(1, name);
  Tensor tensor = Tensor::empty(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.mutable_data()[i] = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
  }
  return tensor;
}

// Units of 1 × `columns` drawn at random, so many that the density is as asked for in the mean.
BitMask drawn_mask(const Size& size, int64_t columns, double density) {
  const CounterRng rng(2, "mask");
  BitMask mask = BitMask::zeros(size.out * size.in);
  for (int64_t unit = 0; unit < size.out * size.in / columns; ++unit) {
    if (rng.uniform(static_cast<uint64_t>(unit)) >= density) continue;
    for (int64_t i = 0; i < columns; ++i) mask.set(unit * columns + i);
  }
  return mask;
}

// Cells that a pattern allows, drawn at random; of blocks so many that the density is as asked for
// in the mean.
BitMask drawn_pattern(const Size& size, const PatternShape& shape, double density) {
  const CounterRng rng(4, "pattern");
  const int64_t high = shape.unit_rows(), wide = shape.unit_columns(), m = shape.m();
  BitMask mask = BitMask::zeros(size.out * size.in);
  uint64_t draws = 0;
  const auto keep = [&](int64_t row, int64_t column) {
    for (int64_t i = 0; i < high * wide; ++i) {
      mask.set((row + i / wide) * size.in + column + i % wide);
    }
  };
  for (int64_t row = 0; row < size.out; row += high) {
    for (int64_t column = 0; column < size.in; column += wide * m) {
      if (shape.is_block() && rng.uniform(draws++) < density) keep(row, column);
      for (int64_t at = 0, left = shape.n(); shape.is_nm() && at < m; ++at) {
        if (rng.uniform(draws++) * static_cast<float>(m - at) >= static_cast<float>(left)) continue;
        keep(row, column + at);
        --left;
      }
    }
  }
  return mask;
}

// A float32 layer in some layout, followed by its ReLU.
struct FloatLayer {
  FloatLayer(const Layout& layout, const Size& size, const BitMask& mask)
      : pattern(Pattern::make(layout, Shape{size.out, size.in}, mask)),
        values(uniform(Shape{pattern->stored_size()}, "values")) {}

  void run(const Tensor& x, const Tensor& bias) {
    y = pattern->layout().forward({*pattern, values.storage(), 1, nullptr}, x, bias);
    activate(Activation::ReLU, y.storage(), y.mutable_storage());
  }

  PatternPtr pattern;
  Tensor values, y;
};

struct Int8Layer {
  Int8Layer(const Size& size_, const BitMask& mask, std::optional<Int8Form> form = std::nullopt)
      : size(size_) {
    const Positions positions = Positions::of(Shape{size.out, size.in}, mask);
    const CounterRng rng(3, "int8");
    for (int64_t i = 0; i < positions.count(); ++i) {
      // Of trained weights few are as large as the largest, which is 127.
      const double drawn = 32.0 * rng.normal(static_cast<uint64_t>(i));
      values.push_back(static_cast<int8_t>(std::clamp(std::lrint(drawn), -127L, 127L)));
    }
    weight = internal::int8_matrix_for(*internal::int8_kernels().front(), size.out, size.in,
                                       positions.row_begin(), positions.column(), values, form);
    scales.assign(static_cast<size_t>(size.out), 1e-4f);
    bias.assign(static_cast<size_t>(size.out), 0.1f);
    x.resize(static_cast<size_t>(int8_slab_bytes(size.batch, size.in)));
    bytes.resize(static_cast<size_t>(int8_slab_bytes(size.batch, size.out)));
    y = Tensor::empty(Shape{size.batch, size.out}, Order::BatchSlabs);
    z = Tensor::empty(Shape{size.batch, size.out}, Order::BatchSlabs);
  }

  Int8Epilogue epilogue() {
    return {.scales = scales.data(), .bias = bias.data(), .zero = grid.zero};
  }
  void quantize(const Tensor& slabs) {
    int8_quantize(slabs.data(Order::BatchSlabs), size.batch, size.in, grid, x.data());
  }
  void fused() {
    Int8Epilogue e = epilogue();
    e.activation = Int8Activation::ReLU;
    e.bytes = bytes.data();
    e.grid = grid;
    int8_product(weight, x.data(), size.batch, e);
  }
  // Three passes: to float32, the ReLU, to bytes.
  void unfused() {
    Int8Epilogue e = epilogue();
    e.floats = y.mutable_data(Order::BatchSlabs);
    int8_product(weight, x.data(), size.batch, e);
    activate(Activation::ReLU, y.storage(), z.mutable_storage());
    int8_quantize(z.data(Order::BatchSlabs), size.batch, size.out, grid, bytes.data());
  }
  bool is_right(const BitMask& mask) {
    Int8Epilogue e = epilogue();
    e.floats = y.mutable_data(Order::BatchSlabs);
    int8_product(weight, x.data(), size.batch, e);
    const std::vector<float> found = y.to_vector();
    const Positions positions = Positions::of(Shape{size.out, size.in}, mask);
    for (int64_t b = 0; b < size.batch; b += 7) {
      size_t place = 0;
      for (int64_t row = 0; row < size.out; ++row) {
        int64_t sum = 0;
        for (const uint32_t column : positions.row(row)) {
          const int64_t at = (b / 64 * int8_quads(size.in) + column / 4) * 256 + b % 64 * 4;
          sum += int64_t{values[place++]} * (x[static_cast<size_t>(at + column % 4)] - grid.zero);
        }
        const auto expected = std::fma(static_cast<float>(sum), 1e-4f, 0.1f);
        if (found[static_cast<size_t>(b * size.out + row)] != expected) return false;
      }
    }
    return true;
  }

  Size size;
  std::vector<int8_t> values;
  Int8Matrix weight;
  std::vector<float> scales, bias;
  Array<uint8_t> x, bytes;
  Tensor y, z;
  Int8Grid grid{.scale = 1.0f / 127.0f, .zero = 128};
};

// Medians of the contenders' times in milliseconds. They take turns of some runs each, of which the
// first one, which finds the caches as others left them, does not count.
std::vector<double> times(int rounds, const std::vector<std::function<void()>>& contenders) {
  std::vector<std::vector<double>> all(contenders.size());
  constexpr int kRuns = 5;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      for (int run = 0; run < kRuns; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        contenders[i]();
        const std::chrono::duration<double, std::milli> taken =
            std::chrono::steady_clock::now() - begin;
        if (run > 0) all[i].push_back(taken.count());
      }
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& one : all) {
    std::ranges::nth_element(one, one.begin() + static_cast<int64_t>(one.size()) / 2);
    medians.push_back(one[one.size() / 2]);
  }
  return medians;
}

void dense_int8(const Size& size, const Array<uint8_t>& x, const Array<int8_t>& w,
                Array<int32_t>& y) {
#if LACUNA_HAVE_DNNL
  const int32_t offset = 0;
  dnnl_gemm_u8s8s32('N', 'T', 'F', size.batch, size.out, size.in, 1.0f, x.data(), size.in, 0,
                    w.data(), size.in, 0, 0.0f, y.data(), size.out, &offset);
#else
  static_cast<void>(size), static_cast<void>(x), static_cast<void>(w), static_cast<void>(y);
#endif
}

int compare(const Size& size, double sparsity) {
  const Tensor x = uniform(Shape{size.batch, size.in}, "x");
  const Tensor slabs = x.to(Order::BatchSlabs);
  const Tensor bias = uniform(Shape{size.out}, "bias");
  const Tensor dense_weight = uniform(Shape{size.out, size.in}, "dense");
  const BitMask free = drawn_mask(size, 1, 1.0 - sparsity);
  const BitMask grouped = drawn_mask(size, 4, 1.0 - sparsity);
  FloatLayer csr(csr_layout(), size, free), csr_of_groups(csr_layout(), size, grouped);
  FloatLayer block(layout_for(PatternShape::block(1, 4)), size, grouped);
  Int8Layer int8(size, grouped), int8_free(size, free);
  int8.quantize(slabs);
  int8_free.quantize(slabs);
  if (!int8.is_right(grouped) || !int8_free.is_right(free)) {
    std::fputs("int8 differs from the sums of integers\n", stderr);
    return 1;
  }
  Tensor dense_y = Tensor::empty(Shape{size.batch, size.out});
  Array<uint8_t> bytes(static_cast<size_t>(size.batch * size.in), 100);
  Array<int8_t> weights(static_cast<size_t>(size.out * size.in), 3);
  Array<int32_t> sums(static_cast<size_t>(size.batch * size.out));
  const std::vector<double> t = times(
      size.rounds, {[&] { csr.run(slabs, bias); }, [&] { csr_of_groups.run(slabs, bias); },
                    [&] { block.run(slabs, bias); }, [&] { int8.fused(); }, [&] { int8.unfused(); },
                    [&] {
                      int8.quantize(slabs);
                      int8.fused();
                    },
                    [&] { int8_free.fused(); },
                    [&] {
                      gemm({.m = size.batch,
                            .n = size.out,
                            .k = size.in,
                            .transpose_b = Transpose::Yes,
                            .a = x.data(),
                            .b = dense_weight.data(),
                            .c = dense_y.mutable_data(),
                            .beta = 0.0f});
                    },
                    [&] { dense_int8(size, bytes, weights, sums); }});
  const double both = (t[7] / t[0]) * (t[7] / t[8]);  // the gains alone, multiplied
  fmt::print(
      "{:>4.0f} %  {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} "
      "{:>8.3f}  {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f}\n",
      100 * sparsity, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[0] / t[3],
      t[8] / t[3], t[4] / t[3], t[7] / t[3] / both);
  return 0;
}

// A layer of a pattern: float32 csr, float32 in the pattern's layout, int8 in groups of 1 x 4 and
// in the form that suits it, dense int8.
int compare_pattern(const Size& size, const PatternShape& shape, double density) {
  const Tensor slabs = uniform(Shape{size.batch, size.in}, "x").to(Order::BatchSlabs);
  const Tensor bias = uniform(Shape{size.out}, "bias");
  const BitMask mask = drawn_pattern(size, shape, density);
  FloatLayer csr(csr_layout(), size, mask), own(layout_for(shape), size, mask);
  // The fastest form in int8, though float32 may run in its place.
  const Positions positions = Positions::of(Shape{size.out, size.in}, mask);
  internal::Int8Kernels kernels = *internal::int8_kernels().front();
  kernels.group_nonzeros = 0.01;
  const Int8Form form = internal::int8_form_for(kernels, size.out, size.in, positions.row_begin(),
                                                positions.column());
  Int8Layer groups(size, mask, Int8Form::Groups), int8(size, mask, form);
  Int8Layer floats(size, mask, Int8Form::Floats);
  const Int8Form chosen = int8_form(size.out, size.in, positions.row_begin(), positions.column());
  groups.quantize(slabs);
  int8.quantize(slabs);
  floats.quantize(slabs);
  if (!groups.is_right(mask) || !int8.is_right(mask) || !floats.is_right(mask)) {
    std::fputs("int8 differs from the sums of integers\n", stderr);
    return 1;
  }
  Array<uint8_t> bytes(static_cast<size_t>(size.batch * size.in), 100);
  Array<int8_t> weights(static_cast<size_t>(size.out * size.in), 3);
  Array<int32_t> sums(static_cast<size_t>(size.batch * size.out));
  const std::vector<double> t = times(
      size.rounds, {[&] { csr.run(slabs, bias); }, [&] { own.run(slabs, bias); },
                    [&] { groups.fused(); }, [&] { int8.fused(); },
                    [&] { dense_int8(size, bytes, weights, sums); }, [&] { floats.fused(); }});
  constexpr const char* kForms[] = {"1x4", "4x4", "4x4 gathered", "float32"};
  fmt::print(
      "{:<14} {:>4.0f} % {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f}  {:>6.2f} {:>6.2f} "
      "{:>6.2f} {:>8} {:>8} {}{}\n",
      shape.to_string(), 100 * (1.0 - density), t[0], t[1], t[5], t[2], t[3], t[4], t[1] / t[3],
      t[2] / t[3], t[4] / t[3], groups.weight.bytes(), int8.weight.bytes(),
      kForms[static_cast<size_t>(form)], chosen == Int8Form::Floats ? ", runs as float32" : "");
  return 0;
}

}  // namespace
}  // namespace lacuna::bench

int main(int count, char** arguments) {
  using lacuna::bench::Size;
  Size size;
  const bool is_tiny = count == 2 && std::string_view(arguments[1]) == "--tiny";
  if (is_tiny) size = {.in = 36, .out = 20, .batch = 70, .rounds = 1};
  if (count == 4) {
    size = {.in = std::atoll(arguments[1]),
            .out = std::atoll(arguments[2]),
            .batch = std::atoll(arguments[3])};
  } else if (count != 1 && !is_tiny) {
    std::fputs("usage: bench_int8 [IN OUT BATCH] | --tiny\n", stderr);
    return 2;
  }
  lacuna::set_num_threads(1);
  omp_set_num_threads(1);  // of raw oneDNN
  fmt::print("int8 kernels: {}; {} x {} -> {}, one thread, ms\n", lacuna::int8_kernels_name(),
             size.batch, size.in, size.out);
  fmt::print(
      "sparsity      csr  csr 1x4 block1x4     int8  unfused with-in  int8csr   sgemm dense-i8 "
      " /csr /dense /unfused  fused/product\n");
  for (const double sparsity : {0.0, 0.5, 0.8, 0.9, 0.95}) {
    if (const int code = lacuna::bench::compare(size, sparsity); code != 0) return code;
  }
  fmt::print(
      "\npattern                     csr    float as-float      1x4     int8 dense-i8  /float   "
      "/1x4"
      " /dense  1x4 bytes   bytes\n");
  using lacuna::PatternShape;
  const auto pattern = [&](const PatternShape& shape, double sparsity) {
    return lacuna::bench::compare_pattern(size, shape, 1.0 - sparsity);
  };
  for (const auto& [n, m] : {std::pair{2, 4}, std::pair{1, 4}, std::pair{2, 8}, std::pair{1, 8}}) {
    for (const int64_t rows : {1, 4, 8, 16}) {
      if (size.out % rows != 0 || size.in % m != 0) continue;
      const double sparsity = 1.0 - static_cast<double>(n) / m;
      if (const int code = pattern(PatternShape::nm(n, m, rows), sparsity); code != 0) return code;
    }
  }
  for (const int64_t rows : {4, 8, 16}) {
    for (const double sparsity : {0.5, 0.8, 0.9, 0.95}) {
      if (size.out % rows != 0) continue;
      if (const int code = pattern(PatternShape::block(rows, 4), sparsity); code != 0) return code;
    }
  }
  return 0;
}
