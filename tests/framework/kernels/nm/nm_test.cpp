#include "lacuna/framework/kernels/nm/nm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/nm/nm_gradient.hpp"
#include "random_values.h"

namespace lacuna::nm_test {
namespace {

/// A matrix whose groups hold up to n nonzeros in random columns, some groups and rows fewer or
/// none, with values and activations.
struct Problem {
  Problem(const NmMatrixForm& form_, double full, int64_t batch_) : form(form_), batch(batch_) {
    const CounterRng rng(7, "nm");
    uint64_t draw = 0;
    row_begin.push_back(0);
    for (int64_t r = 0; r < form.rows; ++r) {
      for (int64_t first = 0; first < form.columns; first += form.m()) {
        std::set<uint32_t> kept;
        const bool is_empty = full == 0.0 || (full < 1.0 && r % 5 == 3);
        for (int k = 0; k < form.n() && !is_empty; ++k) {
          if (rng.uniform(draw++) > full) continue;
          while (!kept.insert(static_cast<uint32_t>(first +
                                                    static_cast<int64_t>(rng.below(
                                                        draw++, static_cast<uint64_t>(form.m())))))
                      .second) {
          }
        }
        column.insert(column.end(), kept.begin(), kept.end());
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    matrix = nm_matrix(form, row_begin, column);
    x = random_tensor(Shape{batch, form.columns}, "x");
    dy = random_tensor(Shape{batch, form.rows}, "dy");
    bias = random_tensor(Shape{form.rows}, "bias");
    values = Tensor::zeros(Shape{form.stored()});
    dense = std::vector<double>(static_cast<size_t>(form.rows * form.columns));
    const Tensor drawn = random_tensor(Shape{form.stored()}, "values");
    nm_for_each(matrix, [&](int64_t slot, int64_t r, int64_t c) {
      values.mutable_data()[slot] = drawn.data()[slot];
      dense[static_cast<size_t>(r * form.columns + c)] = double{drawn.data()[slot]};
    });
  }

  Tensor product(const float* bias_data) const {
    Tensor y = Tensor::full(Shape{batch, form.rows}, NAN).to(Order::BatchSlabs);
    nm_product(matrix, values.data(), x.to(Order::BatchSlabs).data(Order::BatchSlabs), batch,
               bias_data, y.mutable_data(Order::BatchSlabs));
    return y.to(Order::RowMajor);
  }
  std::vector<float> gradient(float start, float* dy_sums = nullptr) const {
    std::vector<float> g(static_cast<size_t>(form.stored()), start == 0.0f ? NAN : start);
    g.reserve(g.size() + 4);
    nm_gradient(matrix, dy.to(Order::BatchSlabs).data(Order::BatchSlabs),
                x.to(Order::BatchSlabs).data(Order::BatchSlabs), batch,
                start != 0.0f ? Accumulate::Yes : Accumulate::No, g.data(), dy_sums);
    return g;
  }
  // The sums of dy over the batch that the gradient leaves.
  void expect_sums() const {
    std::vector<float> sums(static_cast<size_t>(form.rows), NAN);
    EXPECT_EQ(gradient(10.0f, sums.data()), gradient(10.0f));
    const float* dy_at = dy.data();
    for (int64_t r = 0; r < form.rows && form.columns > 0; ++r) {
      double sum = 0.0;
      for (int64_t b = 0; b < batch; ++b) sum += double{dy_at[b * form.rows + r]};
      ASSERT_NEAR(sums[static_cast<size_t>(r)], sum, 1e-4) << "row " << r;
    }
  }

  void expect_product(const Tensor& y, bool with_bias) const {
    const float *found = y.data(), *x_at = x.data(), *bias_at = bias.data();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < form.rows; ++r) {
        double sum = with_bias ? double{bias_at[r]} : 0.0;
        const double* row = dense.data() + r * form.columns;
        for (int64_t c = 0; c < form.columns; ++c) {
          sum += row[c] * double{x_at[b * form.columns + c]};
        }
        ASSERT_NEAR(found[b * form.rows + r], sum, 2e-4) << "example " << b << ", row " << r;
      }
    }
  }
  void expect_gradient(const std::vector<float>& g, double start) const {
    std::vector<double> expected(g.size());
    const float *dy_at = dy.data(), *x_at = x.data();
    nm_for_each(matrix, [&](int64_t slot, int64_t r, int64_t c) {
      double sum = start;
      for (int64_t b = 0; b < batch; ++b) {
        sum += double{dy_at[b * form.rows + r]} * double{x_at[b * form.columns + c]};
      }
      expected[static_cast<size_t>(slot)] = sum;
    });
    for (size_t s = 0; s < g.size(); ++s) ASSERT_NEAR(g[s], expected[s], 2e-4) << "slot " << s;
  }

  NmMatrixForm form;
  int64_t batch;
  std::vector<int64_t> row_begin;
  std::vector<uint32_t> column;
  NmMatrix matrix;
  Tensor x, dy, bias, values;
  std::vector<double> dense;
};

using Format = std::pair<int, int>;
using Sizes =
    std::tuple<Format, int64_t, int64_t, double, int64_t>;  // n:m, rows, groups, full, batch

class NmProducts : public testing::TestWithParam<Sizes> {
 protected:
  Problem problem() const {
    const auto& [format, rows, groups, full, batch] = GetParam();
    const auto& [n, m] = format;
    return Problem({.rows = rows, .columns = groups * m, .pattern = PatternShape::nm(n, m)}, full,
                   batch);
  }
};

TEST_P(NmProducts, InSlabs) {
  const Problem p = problem();
  p.expect_product(p.product(p.bias.data()), true);
  p.expect_product(p.product(nullptr), false);
  p.expect_gradient(p.gradient(0.0f), 0.0);
  p.expect_gradient(p.gradient(10.0f), 10.0);
  p.expect_sums();
}

TEST_P(NmProducts, RowByRow) {
  const Problem p = problem();
  Tensor y = Tensor::full(Shape{p.batch, p.form.rows}, NAN);
  for (const float* bias : {p.bias.data(), static_cast<const float*>(nullptr)}) {
    nm_product_row_major(p.matrix, p.values.data(), p.x.data(), p.batch, bias, y.mutable_data());
    p.expect_product(y, bias != nullptr);
  }
  for (const float start : {0.0f, 10.0f}) {
    std::vector<float> g(static_cast<size_t>(p.form.stored()), start == 0.0f ? NAN : start);
    nm_gradient_row_major(p.matrix, p.dy.data(), p.x.data(), p.batch,
                          start != 0.0f ? Accumulate::Yes : Accumulate::No, g.data());
    p.expect_gradient(g, double{start});
  }
}

// Rows and columns are those of the matrix, in the order of its slots.
TEST_P(NmProducts, SlotsHoldEveryNonzeroOnce) {
  const Problem p = problem();
  std::vector<uint32_t> found(p.column.size());
  std::vector<int64_t> next(p.row_begin.begin(), p.row_begin.end() - 1);
  int64_t last = -1, count = 0;
  nm_for_each(p.matrix, [&](int64_t slot, int64_t row, int64_t column) {
    ASSERT_GT(slot, last);
    last = slot;
    found[static_cast<size_t>(next[static_cast<size_t>(row)]++)] = static_cast<uint32_t>(column);
    ++count;
  });
  EXPECT_EQ(found, p.column);
  EXPECT_EQ(count + static_cast<int64_t>(p.matrix.unused.size()), p.form.stored());
}

// Every kind of slots (1, 2, 4, 8, padded) and code, one off the tile's width, rows that do not
// pair.
INSTANTIATE_TEST_SUITE_P(Formats, NmProducts,
                         testing::Combine(testing::Values(Format{2, 4}, Format{1, 4}, Format{1, 2},
                                                          Format{4, 8}, Format{2, 8}, Format{1, 16},
                                                          Format{8, 16}, Format{3, 4}, Format{5, 7},
                                                          Format{4, 4}, Format{1, 1}, Format{1, 3}),
                                          testing::Values(7), testing::Values(1, 35),
                                          testing::Values(0.7, 1.0), testing::Values(1, 5, 67)));
INSTANTIATE_TEST_SUITE_P(Batches, NmProducts,
                         testing::Combine(testing::Values(Format{2, 4}), testing::Values(33),
                                          testing::Values(101), testing::Values(1.0),
                                          testing::Values(1, 2, 3, 8, 15, 17, 31, 33, 47, 49, 64,
                                                          97, 128, 200)));
// Tiles of which the weight gradient may take two slabs at once.
INSTANTIATE_TEST_SUITE_P(PairsOfSlabs, NmProducts,
                         testing::Combine(testing::Values(Format{2, 4}, Format{1, 4}, Format{1, 2},
                                                          Format{2, 8}, Format{1, 16}),
                                          testing::Values(19), testing::Values(16, 96),
                                          testing::Values(0.7, 1.0),
                                          testing::Values(127, 128, 192, 321)));
INSTANTIATE_TEST_SUITE_P(Edges, NmProducts,
                         testing::Values(Sizes{{2, 4}, 0, 3, 1.0, 2}, Sizes{{2, 4}, 3, 0, 1.0, 70},
                                         Sizes{{2, 4}, 3, 5, 0.0, 9}, Sizes{{2, 4}, 1, 1, 1.0, 1},
                                         Sizes{{1, 4}, 1, 300, 1.0, 17}));

TEST(NmProductsTest, SumsDoNotDependOnTheNumberOfThreads) {
  const Problem p({.rows = 1301, .columns = 328, .pattern = PatternShape::nm(2, 4)}, 1.0, 130);
  ASSERT_LT(p.form.rows_of_block(), p.form.rows);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor y = p.product(p.bias.data());
  const std::vector<float> g = p.gradient(0.0f);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(p.product(p.bias.data()).to_vector(), y.to_vector());
    EXPECT_EQ(p.gradient(0.0f), g);
  }
  set_num_threads(before);
}

TEST(NmProductsTest, NoExamplesLeaveAGradientOfZero) {
  const Problem p({.rows = 5, .columns = 8, .pattern = PatternShape::nm(2, 4)}, 1.0, 0);
  p.expect_gradient(p.gradient(0.0f), 0.0);
  p.expect_gradient(p.gradient(10.0f), 10.0);
}

TEST(NmFormTest, TilesAreEvenAndHoldWholeFours) {
  for (const auto& [n, m] : {Format{2, 4}, Format{1, 4}, Format{1, 16}, Format{3, 7}}) {
    for (const int64_t groups : {0, 1, 2, 31, 33, 64, 257}) {
      const NmMatrixForm form{.rows = 3, .columns = groups * m, .pattern = PatternShape::nm(n, m)};
      int64_t column = 0, slot = 0, code = 0;
      for (int64_t t = 0; t < form.tiles(); ++t) {
        const NmTile tile = form.tile(t);
        EXPECT_EQ(tile.first_column, column);
        EXPECT_EQ(tile.first_slot, slot);
        EXPECT_EQ(tile.first_code, code);
        if (t + 1 < form.tiles()) {
          EXPECT_EQ(tile.slots % 4, 0);
        }
        EXPECT_LE(tile.columns, 128);
        column += tile.columns;
        slot += 3 * tile.slots;
        code += 3 * tile.code_bytes;
      }
      EXPECT_EQ(column, form.columns);
      EXPECT_EQ(slot, form.stored());
      EXPECT_EQ(code, form.code_bytes());
    }
  }
}

}  // namespace
}  // namespace lacuna::nm_test
