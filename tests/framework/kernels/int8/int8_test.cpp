#include "lacuna/framework/kernels/int8/int8.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "random_values.h"

namespace lacuna::int8_test {
namespace {

using internal::Int8Kernels;

enum class Values { Random, Extreme };

/// A sparse int8 matrix and a batch of bytes, row-major, with some rows and columns empty.
struct Problem {
  Problem(int64_t rows_, int64_t columns_, double density, int64_t batch_,
          Values kind = Values::Random)
      : rows(rows_), columns(columns_), batch(batch_) {
    const CounterRng rng(11, "int8");
    row_begin.push_back(0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto i = static_cast<uint64_t>(r * columns + c);
        const bool may = density >= 1.0 || (r % 5 != 3 && c % 9 < 7);
        if (!may || rng.uniform(i) >= density) continue;
        column.push_back(static_cast<uint32_t>(c));
        const auto drawn = static_cast<int>(rng.below(i, 256));
        values.push_back(static_cast<int8_t>(kind == Values::Random ? drawn - 128
                                             : drawn % 2 == 0       ? -128
                                                                    : 127));
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      weights.push_back(
          internal::int8_matrix_for(*kernels, rows, columns, row_begin, column, values));
    }
    bytes.resize(static_cast<size_t>(int8_slab_bytes(batch, columns)));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto drawn = static_cast<int>(rng.below(static_cast<uint64_t>(b * columns + c), 256));
        x.push_back(kind == Values::Random ? drawn : drawn % 3 == 0 ? 0 : 255);
        bytes[place(b, c, columns)] = static_cast<uint8_t>(x.back());
      }
    }
    scales = random_values(rows, "scales");
    bias = random_values(rows, "bias");
    for (float& scale : scales) scale = (std::abs(scale) + 0.01f) / 4096.0f;
    residual = random_tensor(Shape{batch, rows}, "residual").to(Order::BatchSlabs);
    const auto padded = static_cast<size_t>((batch + 63) / 64 * 64);
    for (size_t b = 0; b < padded; ++b) {
      example_scales.push_back(0.25f + static_cast<float>(b) / 64.0f);
      example_zeros.push_back(static_cast<int32_t>(b * 37 % 256));
    }
  }

  static size_t place(int64_t example, int64_t feature, int64_t features) {
    return static_cast<size_t>((example / 64 * int8_quads(features) + feature / 4) * 256 +
                               example % 64 * 4 + feature % 4);
  }

  int32_t sum(int64_t b, int64_t row, int32_t zero) const {
    int64_t total = 0;
    for (int64_t i = row_begin[static_cast<size_t>(row)];
         i < row_begin[static_cast<size_t>(row) + 1]; ++i) {
      const auto place = static_cast<size_t>(i);
      total +=
          int64_t{values[place]} * (x[static_cast<size_t>(b * columns + column[place])] - zero);
    }
    return static_cast<int32_t>(total);
  }

  const Int8Matrix& weight(const Int8Kernels& kernels) const {
    const auto& all = internal::int8_kernels();
    return weights[static_cast<size_t>(std::ranges::find(all, &kernels) - all.begin())];
  }

  Int8Epilogue epilogue() const {
    return {.scales = scales.data(), .bias = bias.data(), .zero = 100};
  }

  std::vector<float> floats(const Int8Kernels& kernels, Int8Epilogue e) const {
    Tensor y = Tensor::full(Shape{batch, rows}, NAN).to(Order::BatchSlabs);
    e.floats = y.mutable_data(Order::BatchSlabs);
    internal::int8_product_by(kernels, weight(kernels), bytes.data(), batch, e);
    return y.to_vector();
  }
  std::vector<uint8_t> quads(const Int8Kernels& kernels, Int8Epilogue e) const {
    std::vector<uint8_t> y(static_cast<size_t>(int8_slab_bytes(batch, rows)), 7);
    e.bytes = y.data();
    internal::int8_product_by(kernels, weight(kernels), bytes.data(), batch, e);
    std::vector<uint8_t> plain;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < rows; ++r) plain.push_back(y[place(b, r, rows)]);
    }
    return plain;
  }

  int64_t rows, columns, batch;
  std::vector<int64_t> row_begin;
  std::vector<uint32_t> column;
  std::vector<int8_t> values;
  std::vector<int32_t> x;
  std::vector<uint8_t> bytes;
  std::vector<Int8Matrix> weights;  // for each of int8_kernels()
  std::vector<float> scales, bias, example_scales;
  std::vector<int32_t> example_zeros;
  Tensor residual;
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const int64_t batch : {1, 16, 17, 33, 64, 65, 130}) {
    all.emplace_back(7, 13, 0.5, batch);
  }
  for (const int64_t size : {1, 2, 3, 4, 5, 31, 33}) all.emplace_back(size, size + 1, 0.7, 70);
  all.emplace_back(40, 1500, 0.3, 64);                  // several tiles
  all.emplace_back(40, 1500, 0.01, 64);                 // of which many rows have nothing
  all.emplace_back(66, 700, 1.0, 64, Values::Extreme);  // dense, and pairs of rows
  all.emplace_back(33, 900, 0.6, 48, Values::Extreme);
  all.emplace_back(1100, 160, 0.5, 64);  // several blocks
  all.emplace_back(9, 20, 0.0, 64);      // all pruned
  return all;
}

double activated(Int8Activation kind, double y) {
  switch (kind) {
    case Int8Activation::None:
      return y;
    case Int8Activation::ReLU:
      return std::max(y, 0.0);
    case Int8Activation::GELU:
      return 0.5 * y * std::erfc(-y / std::sqrt(2.0));
    case Int8Activation::GELUTanh:
      return 0.5 * y * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (y + 0.044715 * y * y * y)));
  }
  return y;
}

TEST(Int8Product, IsTheExactSumTimesItsScale) {
  for (const Problem& p : problems()) {
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const std::vector<float> y = p.floats(*kernels, p.epilogue());
      for (int64_t b = 0; b < p.batch; ++b) {
        for (int64_t r = 0; r < p.rows; ++r) {
          const auto row = static_cast<size_t>(r);
          const float expected =
              std::fma(static_cast<float>(p.sum(b, r, 100)), p.scales[row], p.bias[row]);
          ASSERT_EQ(y[static_cast<size_t>(b * p.rows + r)], expected)
              << kernels->name << " [" << p.rows << ", " << p.columns << "] " << b << ' ' << r;
        }
      }
    }
  }
}

TEST(Int8Product, ActivatesAndAddsWhatFollows) {
  for (const Problem& p : problems()) {
    for (const Int8Activation kind : {Int8Activation::None, Int8Activation::ReLU,
                                      Int8Activation::GELU, Int8Activation::GELUTanh}) {
      Int8Epilogue e = p.epilogue();
      e.activation = kind;
      e.residual = p.residual.data(Order::BatchSlabs);
      const std::vector<float> residual = p.residual.to_vector();
      const std::vector<float> plain = p.floats(internal::kPlainInt8, e);
      for (int64_t b = 0; b < p.batch; ++b) {
        for (int64_t r = 0; r < p.rows; ++r) {
          const auto row = static_cast<size_t>(r), at = static_cast<size_t>(b * p.rows + r);
          const float y =
              std::fma(static_cast<float>(p.sum(b, r, 100)), p.scales[row], p.bias[row]);
          ASSERT_NEAR(plain[at], activated(kind, y) + residual[at], 1e-6 * (1.0 + std::abs(y)));
        }
      }
      for (const Int8Kernels* kernels : internal::int8_kernels()) {
        ASSERT_EQ(p.floats(*kernels, e), plain) << kernels->name;
      }
    }
  }
}

TEST(Int8Product, WritesTheBytesOfTheNextProduct) {
  const Int8Grid grid{.scale = 0.03f, .zero = 90};
  for (const Problem& p : problems()) {
    for (const Int8Activation kind : {Int8Activation::ReLU, Int8Activation::GELU}) {
      Int8Epilogue e = p.epilogue();
      e.activation = kind;
      e.grid = grid;
      const std::vector<float> floats = p.floats(internal::kPlainInt8, e);
      for (const Int8Kernels* kernels : internal::int8_kernels()) {
        const std::vector<uint8_t> bytes = p.quads(*kernels, e);
        for (size_t i = 0; i < bytes.size(); ++i) {
          const float q = std::fma(floats[i], 1.0f / grid.scale, 90.0f);
          ASSERT_EQ(bytes[i], std::lrint(std::clamp(q, 0.0f, 255.0f))) << kernels->name;
        }
      }
    }
  }
}

TEST(Int8Product, TakesAGridForEachExample) {
  for (const Problem& p : problems()) {
    Int8Epilogue e = p.epilogue();
    e.example_scales = p.example_scales.data();
    e.example_zeros = p.example_zeros.data();
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const std::vector<float> y = p.floats(*kernels, e);
      for (int64_t b = 0; b < p.batch; ++b) {
        const auto example = static_cast<size_t>(b);
        for (int64_t r = 0; r < p.rows; ++r) {
          const auto row = static_cast<size_t>(r);
          const auto sum = static_cast<float>(p.sum(b, r, p.example_zeros[example]));
          ASSERT_EQ(y[static_cast<size_t>(b * p.rows + r)],
                    std::fma(sum, p.scales[row] * p.example_scales[example], p.bias[row]))
              << kernels->name;
        }
      }
    }
  }
}

TEST(Int8Product, OfAZeroScaleIsTheBias) {
  Problem p(6, 9, 0.8, 20);
  std::ranges::fill(p.scales, 0.0f);
  for (const Int8Kernels* kernels : internal::int8_kernels()) {
    const std::vector<float> y = p.floats(*kernels, p.epilogue());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], p.bias[i % 6]);
  }
}

TEST(Int8Product, SaturatesBytesAtBothEnds) {
  Problem p(4, 8, 1.0, 16);
  for (const float bias : {-1e30f, 1e30f}) {
    std::ranges::fill(p.bias, bias);
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      EXPECT_THAT(p.quads(*kernels, p.epilogue()), testing::Each(bias < 0 ? 0 : 255));
    }
  }
}

// Few examples run another loop on another order, to the same bits.
TEST(Int8FewProduct, GivesWhatTheProductGives) {
  const Int8Grid grid{.scale = 0.03f, .zero = 90};
  for (const Problem& p : problems()) {
    const int64_t batch = std::min<int64_t>(p.batch, 3);
    for (const bool is_dynamic : {false, true}) {
      Int8Epilogue e = p.epilogue();
      e.activation = Int8Activation::GELU;
      e.rectifies_sum = is_dynamic;
      e.residual = p.residual.data(Order::BatchSlabs);
      if (is_dynamic) {
        e.example_scales = p.example_scales.data();
        e.example_zeros = p.example_zeros.data();
      }
      e.grid = grid;
      const std::vector<float> expected = p.floats(internal::kPlainInt8, e);
      const std::vector<float> residual = p.residual.to_vector();
      const int64_t in = int8_row_bytes(p.columns), out = int8_row_bytes(p.rows);
      std::vector<uint8_t> x(static_cast<size_t>(batch * in), 255);
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t c = 0; c < p.columns; ++c) {
          x[static_cast<size_t>(b * in + c)] =
              static_cast<uint8_t>(p.x[static_cast<size_t>(b * p.columns + c)]);
        }
      }
      for (size_t k = 0; k < internal::int8_kernels().size(); ++k) {
        const Int8Kernels& kernels = *internal::int8_kernels()[k];
        std::vector<float> y(static_cast<size_t>(batch * p.rows));
        std::vector<uint8_t> bytes(static_cast<size_t>(batch * out), 7);
        e.residual = residual.data();
        e.floats = y.data();
        e.bytes = bytes.data();
        internal::int8_few_product_by(kernels, p.weights[k], int8_sliced(p.weights[k]), x.data(),
                                      batch, e);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << kernels.name;
        for (int64_t b = 0; b < batch; ++b) {
          for (int64_t r = 0; r < out; ++r) {
            const float q = r < p.rows ? std::fma(y[static_cast<size_t>(b * p.rows + r)],
                                                  1.0f / grid.scale, 90.0f)
                                       : 0.0f;
            ASSERT_EQ(bytes[static_cast<size_t>(b * out + r)],
                      std::lrint(std::clamp(q, 0.0f, 255.0f)));
          }
        }
      }
    }
  }
}

TEST(Int8Quantize, GivesRowsOfFewExamples) {
  for (const int64_t features : {1, 15, 16, 33, 130}) {
    const Tensor x = random_tensor(Shape{3, features}, "x");
    const Int8Grid grid{.scale = 0.01f, .zero = 77};
    const int64_t row = int8_row_bytes(features);
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      std::vector<uint8_t> bytes(static_cast<size_t>(3 * row), 9);
      internal::int8_quantize_rows_by(*kernels, x.data(), 3, features, grid, bytes.data());
      for (int64_t b = 0; b < 3; ++b) {
        for (int64_t f = 0; f < row; ++f) {
          const float q =
              f < features ? std::fma(x.data()[b * features + f], 1.0f / grid.scale, 77.0f) : 0.0f;
          ASSERT_EQ(bytes[static_cast<size_t>(b * row + f)],
                    std::lrint(std::clamp(q, 0.0f, 255.0f)));
        }
      }
    }
  }
}

TEST(Int8Product, IsTheSameOnAnyNumberOfThreads) {
  const Problem p(1100, 160, 0.5, 130);
  const int before = num_threads();
  std::vector<std::vector<float>> all;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    all.push_back(p.floats(*internal::int8_kernels().front(), p.epilogue()));
  }
  set_num_threads(before);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST(Int8Quantize, RoundsToTheNearestByteAndClamps) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Int8Grid grid{.scale = 0.5f, .zero = 10};
  for (const int64_t features : {1, 2, 3, 4, 5, 18}) {
    Tensor x = random_tensor(Shape{70, features}, "x");
    const std::vector<float> special = {1e30f, -1e30f, NAN,  kInfinity, -kInfinity, 0.25f,
                                        0.75f, -5.0f,  0.0f, -0.0f,     122.5f,     122.49f};
    std::ranges::copy(special, x.mutable_data());
    const Tensor slabs = x.to(Order::BatchSlabs);
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      std::vector<uint8_t> bytes(static_cast<size_t>(int8_slab_bytes(70, features)), 9);
      internal::int8_quantize_by(*kernels, slabs.data(Order::BatchSlabs), 70, features, grid,
                                 bytes.data());
      for (int64_t b = 0; b < 70; ++b) {
        for (int64_t f = 0; f < features; ++f) {
          const float q = std::fma(x.data()[b * features + f], 2.0f, 10.0f);
          const long expected = std::isnan(q) ? 0 : std::lrint(std::clamp(q, 0.0f, 255.0f));
          ASSERT_EQ(bytes[Problem::place(b, f, features)], expected) << kernels->name << ' ' << q;
        }
        for (int64_t f = features; f < int8_quads(features) * 4; ++f) {
          ASSERT_EQ(bytes[Problem::place(b, f, features)], 0);
        }
      }
    }
  }
}

TEST(Int8Quantize, GivesEachExampleItsOwnGrid) {
  const Tensor x = random_tensor(Shape{67, 21}, "x");
  const Tensor slabs = x.to(Order::BatchSlabs);
  for (const Int8Kernels* kernels : internal::int8_kernels()) {
    std::vector<float> scales(128);
    std::vector<int32_t> zeros(128);
    std::vector<uint8_t> bytes(static_cast<size_t>(int8_slab_bytes(67, 21)));
    internal::int8_quantize_examples_by(*kernels, slabs.data(Order::BatchSlabs), 67, 21,
                                        scales.data(), zeros.data(), bytes.data());
    for (int64_t b = 0; b < 67; ++b) {
      const float* row = x.data() + b * 21;
      const auto [low, high] = std::minmax_element(row, row + 21);
      const Int8Grid grid = int8_grid(*low, *high);
      const auto example = static_cast<size_t>(b);
      ASSERT_EQ(scales[example], grid.scale);
      ASSERT_EQ(zeros[example], grid.zero);
      for (int64_t f = 0; f < 21; ++f) {
        const float back = grid.scale * static_cast<float>(bytes[Problem::place(b, f, 21)] -
                                                           static_cast<int>(grid.zero));
        ASSERT_NEAR(back, row[f], 0.51f * grid.scale);
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::int8_test
