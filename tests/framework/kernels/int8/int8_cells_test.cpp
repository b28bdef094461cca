// Int8 weights whose rows share inputs, stored in cells of four rows, and weights that are computed
// in float32: the results are the same to the bit.
#include "lacuna/framework/kernels/int8/int8_cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "random_values.h"

namespace lacuna::int8_cells_test {
namespace {

using internal::Int8Kernels;

/// Of each `m` units of `wide` columns, `n` are kept by chance, the same for `high` rows; n = 0:
/// each is kept or not. `form`: where a group takes as long as 1.1 nonzeros of float32 csr.
struct PatternCase {
  std::string name;
  int64_t rows, columns, high, wide, n, m;
  Int8Form form;
  bool extreme = false;
};

std::vector<PatternCase> cases() {
  return {
      {"2:4 g8", 48, 64, 8, 1, 2, 4, Int8Form::GatheredCells},
      {"2:4 g8 extreme", 32, 1100, 8, 1, 2, 4, Int8Form::GatheredCells, true},
      {"2:4 g16, several blocks", 1040, 160, 16, 1, 2, 4, Int8Form::GatheredCells},
      {"1:4 g8", 24, 100, 8, 1, 1, 4, Int8Form::GatheredCells, true},
      {"1:4 g12, a line that is not full", 12, 36, 12, 1, 1, 4, Int8Form::GatheredCells},
      {"2:8 g8", 16, 72, 8, 1, 2, 8, Int8Form::GatheredCells},
      {"3:6 g16", 16, 66, 16, 1, 3, 6, Int8Form::GatheredCells, true},
      {"blocks of 16x4", 64, 60, 16, 4, 0, 1, Int8Form::Cells},
      {"blocks of 4x4", 20, 500, 4, 4, 0, 1, Int8Form::Cells, true},
      {"blocks of 32x2", 64, 34, 32, 2, 0, 1, Int8Form::GatheredCells},
      {"dense", 70, 33, 70, 1, 1, 1, Int8Form::Cells, true},
      {"dense, a last row alone", 45, 5, 45, 1, 1, 1, Int8Form::Cells},
      {"2:4", 40, 64, 1, 1, 2, 4, Int8Form::Groups},
      {"blocks of 2x4", 40, 64, 2, 4, 0, 1, Int8Form::Groups},
      {"unstructured", 40, 64, 1, 1, 0, 1, Int8Form::Groups},
      {"one row", 1, 64, 1, 1, 1, 1, Int8Form::Groups},
  };
}

struct PatternProblem {
  PatternProblem(const PatternCase& of, int64_t batch_)
      : rows(of.rows), columns(of.columns), batch(batch_) {
    const CounterRng rng(5, "cells");
    std::vector<std::vector<bool>> kept;
    uint64_t draws = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (row % of.high != 0) {
        kept.push_back(kept.back());
        continue;
      }
      std::vector<bool> own(static_cast<size_t>(columns), false);
      for (int64_t first = 0; first < columns; first += of.m * of.wide) {
        for (int64_t unit = 0, left = of.n; unit < of.m; ++unit) {
          const float drawn = rng.uniform(draws++);
          const bool keeps =
              of.n == 0 ? drawn < 0.4f
                        : drawn * static_cast<float>(of.m - unit) < static_cast<float>(left);
          if (!keeps) continue;
          --left;
          for (int64_t i = 0; i < of.wide; ++i) {
            const int64_t at = first + unit * of.wide + i;
            if (at < columns) own[static_cast<size_t>(at)] = true;
          }
        }
      }
      kept.push_back(own);
    }
    row_begin.push_back(0);
    for (const std::vector<bool>& own : kept) {
      for (size_t c = 0; c < own.size(); ++c) {
        if (!own[c]) continue;
        column.push_back(static_cast<uint32_t>(c));
        const auto drawn = static_cast<int>(rng.below(draws++, 256));
        values.push_back(static_cast<int8_t>(!of.extreme ? drawn - 128 : drawn % 2 ? -128 : 127));
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    bytes.resize(static_cast<size_t>(int8_slab_bytes(batch, columns)), 3);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < columns; ++c) {
        const auto drawn = static_cast<int>(rng.below(draws++, 256));
        x.push_back(of.extreme ? (drawn % 3 == 0 ? 0 : 255) : drawn);
        bytes[static_cast<size_t>((b / 64 * int8_quads(columns) + c / 4) * 256 + b % 64 * 4 +
                                  c % 4)] = static_cast<uint8_t>(x.back());
      }
    }
    for (int64_t r = 0; r < rows; ++r) scales.push_back(1e-4f * static_cast<float>(1 + r % 7));
    bias = random_values(rows, "bias");
    residual = random_tensor(Shape{batch, rows}, "residual").to(Order::BatchSlabs);
    for (int64_t b = 0; b < (batch + 63) / 64 * 64; ++b) {
      example_scales.push_back(0.25f + static_cast<float>(b) / 64.0f);
      example_zeros.push_back(static_cast<int32_t>(b * 37 % 256));
    }
  }

  int32_t sum(int64_t b, int64_t row, int32_t zero) const {
    int64_t total = 0;
    for (auto i = static_cast<size_t>(row_begin[static_cast<size_t>(row)]);
         i < static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1]); ++i) {
      total += int64_t{values[i]} * (x[static_cast<size_t>(b * columns + column[i])] - zero);
    }
    return static_cast<int32_t>(total);
  }
  Int8Matrix matrix(const Int8Kernels& kernels, std::optional<Int8Form> form = {}) const {
    return internal::int8_matrix_for(kernels, rows, columns, row_begin, column, values, form);
  }
  Int8Epilogue epilogue() const {
    return {.scales = scales.data(), .bias = bias.data(), .zero = 100};
  }
  std::vector<float> floats(const Int8Kernels& kernels, const Int8Matrix& weight,
                            Int8Epilogue e) const {
    Tensor y = Tensor::full(Shape{batch, rows}, NAN).to(Order::BatchSlabs);
    e.floats = y.mutable_data(Order::BatchSlabs);
    internal::int8_product_by(kernels, weight, bytes.data(), batch, e);
    return y.to_vector();
  }

  int64_t rows, columns, batch;
  std::vector<int64_t> row_begin;
  std::vector<uint32_t> column;
  std::vector<int8_t> values;
  std::vector<int32_t> x;
  std::vector<uint8_t> bytes;
  std::vector<float> scales, bias, example_scales;
  std::vector<int32_t> example_zeros;
  Tensor residual;
};

Int8Form form_by(const PatternProblem& p, bool splits_words, double group_nonzeros) {
  Int8Kernels kernels = internal::kPlainInt8;
  kernels.splits_words = splits_words;
  kernels.group_nonzeros = group_nonzeros;
  return internal::int8_form_for(kernels, p.rows, p.columns, p.row_begin, p.column);
}

TEST(Int8Form, FollowsFromThePositionsAndTheKernels) {
  for (const PatternCase& of : cases()) {
    const PatternProblem p(of, 1);
    EXPECT_EQ(form_by(p, false, 1.1), of.form) << of.name;
    const bool is_cells = of.form == Int8Form::Cells;
    EXPECT_EQ(form_by(p, true, 1.1), is_cells ? Int8Form::Groups : of.form) << of.name;
    EXPECT_EQ(form_by(p, false, 20.0), Int8Form::Floats) << of.name;
    const Int8Kernels& best = *internal::int8_kernels().front();
    EXPECT_EQ(int8_form(p.rows, p.columns, p.row_begin, p.column), p.matrix(best).form);
  }
}

// With two nonzeros in a group, float32 is faster where a group takes as long as 2.2 nonzeros.
TEST(Int8Form, IsFloat32WhereInt8IsSlower) {
  const PatternProblem half_full({"2:4", 40, 64, 1, 1, 2, 4, Int8Form::Groups}, 1);
  EXPECT_EQ(form_by(half_full, false, 2.0), Int8Form::Groups);
  EXPECT_EQ(form_by(half_full, false, 2.2), Int8Form::Floats);
}

// Float32 represents every sum of 1024 products exactly, but not of more.
TEST(Int8Form, IsNotFloat32ForLongRows) {
  const auto form_of_row = [](int64_t nonzeros) {
    const PatternProblem p({"dense", 1, nonzeros, 1, 1, 1, 1, Int8Form::Groups}, 1);
    return form_by(p, false, 20.0);
  };
  EXPECT_EQ(form_of_row(1024), Int8Form::Floats);
  EXPECT_EQ(form_of_row(1025), Int8Form::Groups);
}

// The largest sums that are computed as floats: 2²⁴, and partial sums of both signs.
TEST(Int8Floats, HoldTheLargestSumsExactly) {
  constexpr int64_t kRows = 3, kColumns = kMostInt8Floats;
  std::vector<int64_t> row_begin;
  for (int64_t r = 0; r <= kRows; ++r) row_begin.push_back(r * kColumns);
  std::vector<uint32_t> column;
  std::vector<int8_t> values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    column.push_back(static_cast<uint32_t>(i % kColumns));
    const bool is_negative = i < 2 * kColumns || i % 2 == 0;
    values.push_back(static_cast<int8_t>(is_negative ? -128 : 127));
  }
  values.front() = -127;  // an odd sum
  const std::vector<float> scales(kRows, 1.0f);
  for (const int byte : {0, 1, 255}) {
    const std::vector<uint8_t> x(static_cast<size_t>(int8_slab_bytes(1, kColumns)),
                                 static_cast<uint8_t>(byte));
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      const Int8Matrix weight = internal::int8_matrix_for(*kernels, kRows, kColumns, row_begin,
                                                          column, values, Int8Form::Floats);
      Tensor y = Tensor::empty(Shape{1, kRows}, Order::BatchSlabs);
      internal::int8_product_by(
          *kernels, weight, x.data(), 1,
          {.scales = scales.data(), .zero = 128, .floats = y.mutable_data(Order::BatchSlabs)});
      const std::vector<float> found = y.to_vector();
      for (int64_t r = 0; r < kRows; ++r) {
        int64_t sum = 0;
        for (int64_t i = 0; i < kColumns; ++i) {
          sum += int64_t{values[static_cast<size_t>(r * kColumns + i)]} * (byte - 128);
        }
        EXPECT_EQ(found[static_cast<size_t>(r)], static_cast<float>(sum)) << kernels->name;
      }
    }
  }
}

// Pairs of a gathered line overflow 16 bits in the given order, but not in another.
TEST(Int8Cells, PairsInputsSoThatLinesNeedNotBeSplit) {
  std::vector<int64_t> row_begin = {0};
  std::vector<uint32_t> column;
  std::vector<int8_t> values;
  for (int row = 0; row < 8; ++row) {
    row_begin.push_back(4 * (row + 1));
    for (const uint32_t c : {0, 2, 4, 6}) column.push_back(c);
    for (const int8_t v : std::initializer_list<int8_t>{100, 90, 20, 30}) values.push_back(v);
  }
  const auto lines = [&] {
    return internal::int8_cells(0, 8, row_begin, column, values, /*splits_words=*/true)
        .runs.front()
        .lines;
  };
  EXPECT_EQ(lines(), 1);
  values[3] = values[1];  // of one row, three are large
  values[2] = values[1];
  EXPECT_EQ(lines(), 2);
}

TEST(Int8Cells, GiveTheExactSumsOnEveryInstructionSet) {
  for (const PatternCase& of : cases()) {
    for (const int64_t batch : {1, 17, 64, 130}) {
      const PatternProblem p(of, batch);
      for (const Int8Kernels* kernels : internal::int8_kernels()) {
        const Int8Form form = batch == 17 ? Int8Form::Floats : of.form;
        const std::vector<float> y = p.floats(*kernels, p.matrix(*kernels, form), p.epilogue());
        Int8Epilogue dynamic = p.epilogue();
        dynamic.example_scales = p.example_scales.data();
        dynamic.example_zeros = p.example_zeros.data();
        const std::vector<float> own = p.floats(*kernels, p.matrix(*kernels, form), dynamic);
        for (int64_t b = 0; b < batch; ++b) {
          const auto e = static_cast<size_t>(b);
          for (int64_t r = 0; r < p.rows; ++r) {
            const auto row = static_cast<size_t>(r), at = static_cast<size_t>(b * p.rows + r);
            ASSERT_EQ(y[at],
                      std::fma(static_cast<float>(p.sum(b, r, 100)), p.scales[row], p.bias[row]))
                << of.name << ' ' << kernels->name << ' ' << b << ' ' << r;
            ASSERT_EQ(own[at], std::fma(static_cast<float>(p.sum(b, r, p.example_zeros[e])),
                                        p.scales[row] * p.example_scales[e], p.bias[row]))
                << of.name << ' ' << kernels->name << ' ' << b << ' ' << r;
          }
        }
      }
    }
  }
}

TEST(Int8Cells, EndAsGroupsDo) {
  for (const PatternCase& of : cases()) {
    const PatternProblem p(of, of.rows < 30 ? 300 : 70);
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      std::vector<std::vector<uint8_t>> bytes;
      std::vector<std::vector<float>> floats;
      for (const Int8Form form : {of.form, Int8Form::Floats, Int8Form::Groups}) {
        Int8Epilogue e = p.epilogue();
        e.activation = Int8Activation::GELU;
        e.residual = p.residual.data(Order::BatchSlabs);
        e.rectifies_sum = true;
        e.grid = {.scale = 0.02f, .zero = 5};
        bytes.emplace_back(static_cast<size_t>(int8_slab_bytes(p.batch, p.rows)), uint8_t{9});
        e.bytes = bytes.back().data();
        floats.push_back(p.floats(*kernels, p.matrix(*kernels, form), e));
        bytes.back().resize(static_cast<size_t>(int8_slab_bytes(64, p.rows)));  // without padding
      }
      for (const size_t form : {0, 1}) {
        EXPECT_EQ(floats[form], floats[2]) << of.name << ' ' << kernels->name;
        EXPECT_EQ(bytes[form], bytes[2]) << of.name << ' ' << kernels->name;
      }
    }
  }
}

TEST(Int8Cells, RunFewExamplesToTheSameBits) {
  for (const PatternCase& of : cases()) {
    const PatternProblem p(of, 2);
    const int64_t in = int8_row_bytes(p.columns);
    std::vector<uint8_t> x(static_cast<size_t>(2 * in), 255);
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t c = 0; c < p.columns; ++c) {
        x[static_cast<size_t>(b * in + c)] =
            static_cast<uint8_t>(p.x[static_cast<size_t>(b * p.columns + c)]);
      }
    }
    for (const Int8Kernels* kernels : internal::int8_kernels()) {
      for (const Int8Form form : {of.form, Int8Form::Floats}) {
        const Int8Matrix weight = p.matrix(*kernels, form);
        std::vector<float> y(static_cast<size_t>(2 * p.rows));
        Int8Epilogue e = p.epilogue();
        e.floats = y.data();
        internal::int8_few_product_by(*kernels, weight, int8_sliced(weight), x.data(), 2, e);
        EXPECT_EQ(y, p.floats(*kernels, weight, p.epilogue())) << of.name << ' ' << kernels->name;
      }
    }
  }
}

TEST(Int8Cells, AreTheSameOnAnyNumberOfThreads) {
  const PatternProblem p(cases()[2], 130);
  const Int8Kernels& kernels = *internal::int8_kernels().front();
  const int before = num_threads();
  std::vector<std::vector<float>> all;
  for (const Int8Form form : {Int8Form::GatheredCells, Int8Form::Floats}) {
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      all.push_back(p.floats(kernels, p.matrix(kernels, form), p.epilogue()));
    }
  }
  set_num_threads(before);
  for (const std::vector<float>& one : all) EXPECT_EQ(one, all[0]);
}

TEST(Int8Cells, TakeFewerBytesThanGroups) {
  for (const PatternCase& of : cases()) {
    if (of.form == Int8Form::Groups || of.rows < 16) continue;
    const PatternProblem p(of, 1);
    const int64_t cells = p.matrix(internal::kPlainInt8, of.form).bytes();
    EXPECT_LT(cells, p.matrix(internal::kPlainInt8, Int8Form::Groups).bytes()) << of.name;
  }
}

TEST(Int8Cells, OfPrunedRowsAreTheBias) {
  const std::vector<int64_t> row_begin(9, 0);
  const Int8Kernels& kernels = *internal::int8_kernels().front();
  const Int8Matrix weight = internal::int8_matrix_for(kernels, 8, 12, row_begin, {}, {});
  const std::vector<uint8_t> x(static_cast<size_t>(int8_slab_bytes(3, 12)), 200);
  const std::vector<float> scales(8, 1.0f), bias = random_values(8, "bias");
  Tensor y = Tensor::full(Shape{3, 8}, NAN).to(Order::BatchSlabs);
  internal::int8_product_by(kernels, weight, x.data(), 3,
                            {.scales = scales.data(),
                             .bias = bias.data(),
                             .zero = 100,
                             .floats = y.mutable_data(Order::BatchSlabs)});
  const std::vector<float> found = y.to_vector();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], bias[i % 8]);
}

}  // namespace
}  // namespace lacuna::int8_cells_test
