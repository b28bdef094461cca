#include "lacuna/framework/kernels/blocks/block_products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/blocks/block_gradient.hpp"
#include "throws.h"

namespace lacuna::block_products_test {
namespace {

using test::normal_tensor;

// Sums of up to some thousand products of values around 1, in another order than the reference's.
constexpr double kTolerance = 2e-3;

/// A matrix of cells at random positions, some rows and columns of cells empty, and activations.
/// rows and columns count cells.
struct Problem {
  Problem(const PatternShape& cell_, int64_t rows_, int64_t columns_, double density,
          int64_t batch_)
      : cell(cell_),
        rows(rows_ * cell.unit_rows()),
        columns(columns_ * cell.unit_columns()),
        batch(batch_) {
    const CounterRng rng(7, "grouped");
    std::vector<int64_t> row_begin{0};
    std::vector<uint32_t> column;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < columns_; ++c) {
        const bool may = density >= 1.0 || (r % 5 != 3 && c % 7 != 2);
        if (may && rng.uniform(static_cast<uint64_t>(r * columns_ + c)) < density) {
          column.push_back(static_cast<uint32_t>(c));
        }
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    stream = block_stream(cell, rows_, columns_, row_begin, column);
    values = normal_tensor("values", Shape{stream.nnz()});
    x = normal_tensor("x", Shape{batch, columns});
    dy = normal_tensor("dy", Shape{batch, rows});
    bias = normal_tensor("bias", Shape{rows});
    find_places();
  }

  // Where each value is in the matrix.
  void find_places() {
    row_of.resize(static_cast<size_t>(stream.nnz()));
    column_of.resize(row_of.size());
    csr_for_each_segment(stream.cells, [&](int64_t row, int64_t first, int64_t tile, int64_t n) {
      for (int64_t k = first; k < first + n; ++k) {
        const int64_t column = tile + stream.cells.offsets[static_cast<size_t>(k)];
        for (int64_t i = 0; i < cell.unit_size(); ++i) {
          row_of[static_cast<size_t>(k * cell.unit_size() + i)] =
              row * cell.unit_rows() + i % cell.unit_rows();
          column_of[static_cast<size_t>(k * cell.unit_size() + i)] =
              column * cell.unit_columns() + i / cell.unit_rows();
        }
      }
    });
  }

  static const float* slabs(const Tensor& t, Tensor& kept) {
    kept = t.to(Order::BatchSlabs);
    return kept.data(Order::BatchSlabs);
  }

  Tensor product(const float* added) const {
    Tensor in, y = Tensor::full(Shape{batch, rows}, NAN).to(Order::BatchSlabs);
    block_product(stream, values.data(), slabs(x, in), batch, added,
                  y.mutable_data(Order::BatchSlabs));
    return y.to(Order::RowMajor);
  }
  Tensor input_gradient(bool by_columns, const float* added = nullptr) const {
    Tensor in, dx = Tensor::full(Shape{batch, columns}, NAN).to(Order::BatchSlabs);
    float* out = dx.mutable_data(Order::BatchSlabs);
    if (by_columns) {
      block_input_gradient(stream, block_transposed(stream), values.data(), slabs(dy, in), batch,
                           out);
    } else {
      block_input_gradient(stream, values.data(), slabs(dy, in), batch, added, out);
    }
    return dx.to(Order::RowMajor);
  }
  std::vector<float> gradient(bool accumulate, float* dy_sums = nullptr) const {
    Tensor in, out;
    std::vector<float> g(row_of.size(), accumulate ? 10.0f : NAN);
    block_gradient(stream, slabs(dy, out), slabs(x, in), batch,
                   accumulate ? Accumulate::Yes : Accumulate::No, g.data(), dy_sums);
    return g;
  }
  // The sums of dy over the batch that the gradient leaves.
  void expect_sums() const {
    std::vector<float> sums(static_cast<size_t>(rows), NAN);
    EXPECT_EQ(gradient(true, sums.data()), gradient(true));
    const float* dy_at = dy.data();
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0.0;
      for (int64_t b = 0; b < batch; ++b) sum += double{dy_at[b * rows + r]};
      ASSERT_NEAR(sums[static_cast<size_t>(r)], sum, 1e-4) << "row " << r;
    }
  }

  void expect_product(const Tensor& y, bool with_bias) const {
    std::vector<double> expected(static_cast<size_t>(batch * rows));
    const float *found = y.data(), *x_at = x.data(), *value = values.data();
    for (int64_t b = 0; b < batch; ++b) {
      double* out = expected.data() + b * rows;
      for (int64_t r = 0; r < rows; ++r) out[r] = with_bias ? double{bias.data()[r]} : 0.0;
      for (size_t v = 0; v < row_of.size(); ++v) {
        out[row_of[v]] += double{value[v]} * x_at[b * columns + column_of[v]];
      }
    }
    for (int64_t i = 0; i < batch * rows; ++i) {
      ASSERT_NEAR(found[i], expected[static_cast<size_t>(i)], kTolerance) << i;
    }
  }
  void expect_input_gradient(const Tensor& dx, const float* added = nullptr) const {
    std::vector<double> expected(static_cast<size_t>(batch * columns));
    const float *found = dx.data(), *dy_at = dy.data(), *value = values.data();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; added != nullptr && c < columns; ++c) {
        expected[static_cast<size_t>(b * columns + c)] = added[c];
      }
      for (size_t v = 0; v < row_of.size(); ++v) {
        expected[static_cast<size_t>(b * columns + column_of[v])] +=
            double{value[v]} * dy_at[b * rows + row_of[v]];
      }
    }
    for (int64_t i = 0; i < batch * columns; ++i) {
      ASSERT_NEAR(found[i], expected[static_cast<size_t>(i)], kTolerance) << i;
    }
  }
  void expect_gradient(const std::vector<float>& g, double start) const {
    const float *dy_at = dy.data(), *x_at = x.data();
    for (size_t v = 0; v < row_of.size(); ++v) {
      double sum = start;
      for (int64_t b = 0; b < batch; ++b) {
        sum += double{dy_at[b * rows + row_of[v]]} * x_at[b * columns + column_of[v]];
      }
      ASSERT_NEAR(g[v], sum, kTolerance) << v;
    }
  }

  PatternShape cell;
  int64_t rows, columns, batch;
  BlockStream stream;
  Tensor values, x, dy, bias;
  std::vector<int64_t> row_of, column_of;
};

using Sizes = std::tuple<int64_t, int64_t, double, int64_t>;  // cells, density, batch

class BlockProducts : public testing::TestWithParam<std::tuple<PatternShape, Sizes>> {
 protected:
  Problem problem() const {
    const auto& [cell, sizes] = GetParam();
    const auto& [rows, columns, density, batch] = sizes;
    return Problem(cell, rows, columns, density, batch);
  }
};

TEST_P(BlockProducts, InSlabs) {
  const Problem p = problem();
  p.expect_product(p.product(p.bias.data()), true);
  p.expect_product(p.product(nullptr), false);
  if (p.cell.unit_columns() == 1) {
    p.expect_input_gradient(p.input_gradient(false));
    p.expect_input_gradient(p.input_gradient(false, p.x.data()), p.x.data());
  }
  if (p.cell.unit_columns() == 4) p.expect_input_gradient(p.input_gradient(true));
  p.expect_gradient(p.gradient(false), 0.0);
  p.expect_gradient(p.gradient(true), 10.0);
  p.expect_sums();
}

TEST_P(BlockProducts, RowByRow) {
  const Problem p = problem();
  Tensor y = Tensor::full(Shape{p.batch, p.rows}, NAN);
  for (const float* added : {p.bias.data(), static_cast<const float*>(nullptr)}) {
    block_product_row_major(p.stream, p.values.data(), p.x.data(), p.batch, added,
                            y.mutable_data());
    p.expect_product(y, added != nullptr);
  }
  Tensor dx = Tensor::full(Shape{p.batch, p.columns}, NAN);
  for (const float* added : {p.x.data(), static_cast<const float*>(nullptr)}) {
    block_input_gradient_row_major(p.stream, p.values.data(), p.dy.data(), p.batch, added,
                                   dx.mutable_data());
    p.expect_input_gradient(dx, added);
  }
  for (const float start : {0.0f, 10.0f}) {
    std::vector<float> g(p.row_of.size(), start == 0.0f ? NAN : start);
    block_gradient_row_major(p.stream, p.dy.data(), p.x.data(), p.batch,
                             start != 0.0f ? Accumulate::Yes : Accumulate::No, g.data());
    p.expect_gradient(g, double{start});
  }
}

const auto kCells = testing::Values(PatternShape::block(8, 1), PatternShape::block(4, 1),
                                    PatternShape::block(4, 4));
INSTANTIATE_TEST_SUITE_P(
    Edges, BlockProducts,
    testing::Combine(kCells, testing::Values(Sizes{1, 1, 1.0, 1}, Sizes{5, 7, 0.5, 3},
                                             Sizes{7, 5, 0.0, 9}, Sizes{3, 2, 1.0, 64},
                                             Sizes{1, 300, 0.3, 65}, Sizes{60, 1, 0.9, 17},
                                             Sizes{0, 4, 0.5, 2}, Sizes{4, 0, 0.5, 170},
                                             Sizes{0, 4, 0.5, 130}, Sizes{2, 3, 0.7, 0})));
// Batches whose last slab has every number of vectors; one tile and several.
INSTANTIATE_TEST_SUITE_P(Batches, BlockProducts,
                         testing::Combine(kCells,
                                          testing::Combine(testing::Values(4), testing::Values(151),
                                                           testing::Values(0.02, 0.4, 1.0),
                                                           testing::Values(1, 7, 16, 17, 33, 47, 64,
                                                                           97, 128, 193))));
INSTANTIATE_TEST_SUITE_P(Blocks, BlockProducts,
                         testing::Combine(kCells, testing::Values(Sizes{157, 331, 0.3, 5},
                                                                  Sizes{331, 61, 0.3, 70})));

TEST(BlockStreamTest, CutsLargeMatricesIntoBlocksAndTiles) {
  const Problem p(PatternShape::block(8, 1), 157, 331, 0.5, 1);
  EXPECT_GT(p.stream.cells.blocks.size(), 1u);
  EXPECT_LT(p.stream.cells.tile_columns, 331);
  ASSERT_GT(p.stream.tile_begin.size(), 2u);
  std::vector<uint32_t> seen = p.stream.tile_order;
  std::ranges::sort(seen);
  std::vector<uint32_t> all(p.stream.cells.tiles.size());
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(seen, all);
  for (size_t t = 0; t + 1 < p.stream.tile_begin.size(); ++t) {
    for (uint32_t i = p.stream.tile_begin[t]; i < p.stream.tile_begin[t + 1]; ++i) {
      EXPECT_EQ(p.stream.cells.tiles[p.stream.tile_order[i]].first_column,
                static_cast<int64_t>(t) * p.stream.cells.tile_columns);
    }
  }
}

TEST(BlockStreamTest, TransposedCellsNameTheirValues) {
  const Problem p(PatternShape::block(4, 4), 50, 70, 0.2, 1);
  const BlockTransposed transposed = block_transposed(p.stream);
  ASSERT_EQ(transposed.cells.nnz, p.stream.cells.nnz);
  ASSERT_EQ(transposed.source.size(),
            static_cast<size_t>(p.stream.cells.nnz + BlockTransposed::kAhead));
  csr_for_each_segment(
      transposed.cells, [&](int64_t column, int64_t first, int64_t tile, int64_t length) {
        for (int64_t k = first; k < first + length; ++k) {
          const size_t value = transposed.source[static_cast<size_t>(k)] * 16u;
          EXPECT_EQ(p.column_of[value], column * 4);
          EXPECT_EQ(p.row_of[value], (tile + transposed.cells.offsets[static_cast<size_t>(k)]) * 4);
        }
      });
}

TEST(BlockStreamTest, RefusesOtherCells) {
  expect_throws<StateError>(
      [] { block_stream(PatternShape::block(3, 1), 0, 0, std::vector<int64_t>{0}, {}); },
      "8 x 1, 4 x 1 or 4 x 4, not 3 x 1");
}

TEST(BlockProductsTest, SumsDoNotDependOnTheNumberOfThreads) {
  for (const PatternShape& cell :
       {PatternShape::block(8, 1), PatternShape::block(4, 1), PatternShape::block(4, 4)}) {
    const Problem p(cell, 300, 331, 0.3, 130);
    const int before = num_threads();
    set_num_threads(1);
    const Tensor y = p.product(p.bias.data()), dx = p.input_gradient(cell.unit_columns() > 1);
    const std::vector<float> g = p.gradient(false);
    for (const int threads : {2, 5}) {
      set_num_threads(threads);
      EXPECT_EQ(p.product(p.bias.data()).to_vector(), y.to_vector());
      EXPECT_EQ(p.input_gradient(cell.unit_columns() > 1).to_vector(), dx.to_vector());
      EXPECT_EQ(p.gradient(false), g);
    }
    set_num_threads(before);
  }
}

TEST(BlockProductsTest, TheGradientOfOneBlockOfRowsRunsOnSeveralThreads) {
  for (const PatternShape& cell :
       {PatternShape::block(8, 1), PatternShape::block(4, 1), PatternShape::block(4, 4)}) {
    for (const int64_t columns : {120, 1200}) {  // one tile, by its groups, or several
      const Problem p(cell, 480 / cell.unit_rows(), columns / cell.unit_columns(), 0.5, 130);
      ASSERT_EQ(p.stream.cells.blocks.size(), 1u);
      const int before = num_threads();
      set_num_threads(1);
      const std::vector<float> g = p.gradient(true);
      for (const int threads : {2, 5}) {
        set_num_threads(threads);
        internal::take_most_threads();
        EXPECT_EQ(p.gradient(true), g);
        EXPECT_GT(internal::take_most_threads(), 1);
      }
      set_num_threads(before);
    }
  }
}

}  // namespace
}  // namespace lacuna::block_products_test
