#include "lacuna/framework/kernels/csr/csr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/csr_gradient.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "random_values.h"

namespace lacuna::csr_test {
namespace {

/// A matrix by rows with random positions, some rows and columns empty, and random activations.
struct Problem {
  Problem(int64_t rows_, int64_t columns_, double density, int64_t batch_)
      : rows(rows_), columns(columns_), batch(batch_) {
    const CounterRng rng(7, "csr");
    row_begin.push_back(0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const bool may = density >= 1.0 || (r % 5 != 3 && c % 7 != 2);
        if (may && rng.uniform(static_cast<uint64_t>(r * columns + c)) < density) {
          column.push_back(static_cast<uint32_t>(c));
        }
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
    stream = csr_stream(rows, columns, row_begin, column);
    x = random_tensor(Shape{batch, columns}, "x");
    dy = random_tensor(Shape{batch, rows}, "dy");
    bias = random_tensor(Shape{rows}, "bias");
    elements = random_tensor(Shape{static_cast<int64_t>(column.size())}, "values");
    values = Tensor::empty(elements.shape());
    places = csr_canonical_places(stream, row_begin);
    float* stored = values.mutable_data();
    for (size_t v = 0; v < places.size(); ++v) stored[v] = elements.data()[places[v]];
  }

  Tensor product(const float* bias_data) const {
    Tensor y = Tensor::full(Shape{batch, rows}, NAN).to(Order::BatchSlabs);
    csr_product(stream, values.data(), x.to(Order::BatchSlabs).data(Order::BatchSlabs), batch,
                bias_data, y.mutable_data(Order::BatchSlabs));
    return y.to(Order::RowMajor);
  }
  std::vector<float> gradient(bool accumulate, float* dy_sums = nullptr) const {
    std::vector<float> g(places.size(), accumulate ? 10.0f : NAN);
    csr_gradient(stream, dy.to(Order::BatchSlabs).data(Order::BatchSlabs),
                 x.to(Order::BatchSlabs).data(Order::BatchSlabs), batch,
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
    const float *found = y.data(), *x_at = x.data(), *element = elements.data();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < rows; ++r) {
        double sum = with_bias ? bias.data()[r] : 0.0;
        for (auto i = row_begin[static_cast<size_t>(r)]; i < row_begin[static_cast<size_t>(r) + 1];
             ++i) {
          sum += double{element[i]} * x_at[b * columns + column[static_cast<size_t>(i)]];
        }
        ASSERT_NEAR(found[b * rows + r], sum, 2e-4) << "example " << b << ", row " << r;
      }
    }
  }
  void expect_gradient(const std::vector<float>& g, double start) const {
    int64_t row = 0;
    std::vector<double> expected(places.size());
    const float *dy_at = dy.data(), *x_at = x.data();
    for (size_t i = 0; i < column.size(); ++i) {
      while (row_begin[static_cast<size_t>(row) + 1] <= static_cast<int64_t>(i)) ++row;
      double sum = start;
      for (int64_t b = 0; b < batch; ++b) {
        sum += double{dy_at[b * rows + row]} * x_at[b * columns + column[i]];
      }
      expected[i] = sum;
    }
    for (size_t v = 0; v < places.size(); ++v) ASSERT_NEAR(g[v], expected[places[v]], 2e-4);
  }

  // Of the first example: [columns].
  std::vector<double> input_gradient() const {
    std::vector<double> dx(static_cast<size_t>(columns));
    for (size_t r = 0; r + 1 < row_begin.size(); ++r) {
      for (int64_t i = row_begin[r]; i < row_begin[r + 1]; ++i) {
        dx[column[static_cast<size_t>(i)]] += double{elements.data()[i]} * dy.data()[r];
      }
    }
    return dx;
  }

  int64_t rows, columns, batch;
  std::vector<int64_t> row_begin;
  std::vector<uint32_t> column;
  Array<uint32_t> places;
  CsrStream stream;
  Tensor x, dy, bias, elements, values;
};

using Sizes = std::tuple<int64_t, int64_t, double, int64_t>;  // rows, columns, density, batch

class CsrProducts : public testing::TestWithParam<Sizes> {
 protected:
  Problem problem() const {
    return std::apply([](auto... sizes) { return Problem(sizes...); }, GetParam());
  }
};

TEST_P(CsrProducts, InSlabs) {
  const Problem p = problem();
  p.expect_product(p.product(p.bias.data()), true);
  p.expect_product(p.product(nullptr), false);
  p.expect_gradient(p.gradient(false), 0.0);
  p.expect_gradient(p.gradient(true), 10.0);
}

TEST_P(CsrProducts, TheGradientLeavesTheSumsOfDy) { problem().expect_sums(); }

TEST_P(CsrProducts, RowByRow) {
  const Problem p = problem();
  Tensor y = Tensor::full(Shape{p.batch, p.rows}, NAN);
  csr_product_row_major(p.stream, p.values.data(), p.x.data(), p.batch, p.bias.data(),
                        y.mutable_data());
  p.expect_product(y, true);
  csr_product_row_major(p.stream, p.values.data(), p.x.data(), p.batch, nullptr, y.mutable_data());
  p.expect_product(y, false);
  std::vector<float> g(p.places.size(), NAN);
  csr_gradient_row_major(p.stream, p.dy.data(), p.x.data(), p.batch, Accumulate::No, g.data());
  p.expect_gradient(g, 0.0);
  g.assign(g.size(), 10.0f);
  csr_gradient_row_major(p.stream, p.dy.data(), p.x.data(), p.batch, Accumulate::Yes, g.data());
  p.expect_gradient(g, 10.0);
}

TEST_P(CsrProducts, ScatteredInputGradientOfOneExample) {
  const Problem p = problem();
  std::vector<float> dx(static_cast<size_t>(p.columns), NAN);
  csr_scatter_row(p.stream, p.values.data(), p.dy.data(), dx.data());
  const std::vector<double> expected = p.input_gradient();
  for (size_t c = 0; c < dx.size(); ++c) ASSERT_NEAR(dx[c], expected[c], 2e-4) << "column " << c;
}

TEST(CsrScatter, IsLeftWhereTheBlocksSumsWouldBeMany) {
  EXPECT_TRUE(csr_scatters_row(Problem(40, 30, 0.5, 1).stream));
  EXPECT_FALSE(csr_scatters_row(Problem(70, 4000, 0.0005, 1).stream));
}

TEST_P(CsrProducts, SideBySide) {
  const Problem p = problem();
  if (p.batch < 2 || p.batch > kMostInterleaved) return;
  const auto few = [](const Tensor& t) {
    std::vector<float> side_by_side(static_cast<size_t>(t.numel()));
    interleave(t.data(), t.shape()[0], t.shape()[1], side_by_side.data());
    return side_by_side;
  };
  const std::vector<float> x = few(p.x), dy = few(p.dy);
  std::vector<float> y(static_cast<size_t>(p.batch * p.rows), NAN);
  for (const float* bias : {p.bias.data(), static_cast<const float*>(nullptr)}) {
    csr_product_interleaved(p.stream, p.values.data(), x.data(), p.batch, bias, y.data());
    Tensor rows = Tensor::empty(Shape{p.batch, p.rows});
    separate(y.data(), p.batch, p.rows, rows.mutable_data());
    p.expect_product(rows, bias != nullptr);
  }
  for (const float start : {0.0f, 10.0f}) {
    std::vector<float> g(p.places.size(), start == 0.0f ? NAN : start);
    csr_gradient_interleaved(p.stream, dy.data(), x.data(), p.batch,
                             start != 0.0f ? Accumulate::Yes : Accumulate::No, g.data());
    p.expect_gradient(g, double{start});
  }
}

INSTANTIATE_TEST_SUITE_P(Edges, CsrProducts,
                         testing::Values(Sizes{1, 1, 1.0, 1}, Sizes{5, 7, 0.5, 3},
                                         Sizes{7, 5, 0.0, 9}, Sizes{3, 2, 1.0, 64},
                                         Sizes{1, 300, 0.3, 65}, Sizes{300, 1, 0.9, 17},
                                         Sizes{0, 4, 0.5, 2}, Sizes{4, 0, 0.5, 70}));
// Batches whose last slab has every number of vectors; tiles, long tiles and several blocks.
INSTANTIATE_TEST_SUITE_P(
    Batches, CsrProducts,
    testing::Combine(testing::Values(67), testing::Values(401), testing::Values(0.02, 0.4, 1.0),
                     testing::Values(1, 2, 3, 4, 6, 7, 8, 12, 31, 47, 64, 97, 128, 200)));
INSTANTIATE_TEST_SUITE_P(Blocks, CsrProducts,
                         testing::Values(Sizes{1301, 331, 0.2, 5}, Sizes{1301, 331, 0.01, 20}));
// Batches that the gradient of a narrow matrix sums in two to four parts, and one in a single part.
INSTANTIATE_TEST_SUITE_P(PartsOfBatches, CsrProducts,
                         testing::Combine(testing::Values(67, 301), testing::Values(130),
                                          testing::Values(0.3, 0.9),
                                          testing::Values(767, 768, 769, 1215, 1601)));

// Of a matrix far wider than its rows' nonzeros the tiles are long, and those with nothing in them
// are not kept.
TEST(CsrStreamTest, WideMatricesHaveLongTiles) {
  constexpr int64_t kRows = 1100, kColumns = 5'000'000;
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
  const CounterRng rng(1, "wide");
  for (int64_t r = 0; r < kRows; ++r) {
    for (uint64_t k = 0; k < static_cast<uint64_t>(r % 4); ++k) {
      const auto third = static_cast<uint64_t>(kColumns / 3);
      column.push_back(
          static_cast<uint32_t>(k * third + rng.below(4 * static_cast<uint64_t>(r) + k, third)));
    }
    row_begin.push_back(static_cast<int64_t>(column.size()));
  }
  const CsrStream stream = csr_stream(kRows, kColumns, row_begin, column);
  EXPECT_EQ(stream.tile_columns, 65536);
  EXPECT_LE(stream.tiles.size(), 77u);
  std::vector<uint32_t> found(column.size());
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
    for (int64_t k = 0; k < length; ++k) {
      found[static_cast<size_t>(next[static_cast<size_t>(row)]++)] =
          static_cast<uint32_t>(first + stream.offsets[static_cast<size_t>(value + k)]);
    }
  });
  EXPECT_EQ(found, column);
}

TEST(CsrStreamTest, CutsLargeMatricesIntoBlocksAndTiles) {
  const Problem p(1301, 331, 0.2, 1);
  EXPECT_GT(p.stream.blocks.size(), 1u);
  EXPECT_LT(p.stream.tile_columns, 331);
  EXPECT_EQ(p.stream.blocks.front().first_row, 0);
  EXPECT_EQ(p.stream.blocks.back().end_row, 1301);
  for (size_t b = 1; b < p.stream.blocks.size(); ++b) {
    EXPECT_EQ(p.stream.blocks[b].first_row, p.stream.blocks[b - 1].end_row);
  }
}

/// What csr_transposed must give: the stream of the columns' rows, each value from where it is.
void expect_transposed(const CsrStream& stream) {
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> columns(
      static_cast<size_t>(stream.columns));  // rows, and places of their values
  csr_for_each_segment(stream, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
    for (int64_t v = value; v < value + length; ++v) {
      columns[static_cast<size_t>(first + stream.offsets[static_cast<size_t>(v)])].emplace_back(row,
                                                                                                v);
    }
  });
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> rows, places;
  for (auto& column : columns) {
    std::ranges::sort(column);
    for (const auto& [row, place] : column) {
      rows.push_back(row);
      places.push_back(place);
    }
    begin.push_back(static_cast<int64_t>(rows.size()));
  }
  const CsrStream expected = csr_stream(stream.columns, stream.rows, begin, rows);
  const Array<uint32_t> order = csr_canonical_places(expected, begin);
  const CsrTransposed found = csr_transposed(stream);
  EXPECT_EQ(found.stream.tile_columns, expected.tile_columns);
  EXPECT_EQ(found.stream.rows_in_order, expected.rows_in_order);
  EXPECT_EQ(found.stream.offsets, expected.offsets);
  ASSERT_EQ(found.stream.groups.size(), expected.groups.size());
  ASSERT_EQ(found.stream.blocks.size(), expected.blocks.size());
  ASSERT_EQ(found.source.size(), order.size());
  for (size_t v = 0; v < order.size(); ++v) ASSERT_EQ(found.source[v], places[order[v]]);
}

TEST(CsrStreamTest, TransposedIsTheStreamOfTheColumns) {
  for (const auto& [rows, columns, density] : {std::tuple{1, 1, 1.0},
                                               {1, 900, 0.3},
                                               {900, 1, 0.3},
                                               {301, 231, 0.0},
                                               {1301, 331, 0.2},
                                               {331, 1301, 0.2},
                                               {1301, 1301, 1.0},
                                               {640, 2000, 0.001},
                                               {1100, 1100, 0.03}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    expect_transposed(Problem(rows, columns, density, 1).stream);
  }
  expect_transposed(csr_stream(0, 3, std::vector<int64_t>{0}, {}));
}

TEST(CsrStreamTest, TransposedOfVeryWideMatricesIsTheSame) {
  constexpr int64_t kRows = 70, kColumns = 200'000;  // fewer nonzeros than tiles of all rows
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
  for (int64_t r = 0; r < kRows; ++r) {
    if (r % 3 == 0) column.push_back(static_cast<uint32_t>(r * 2803 % kColumns));
    row_begin.push_back(static_cast<int64_t>(column.size()));
  }
  expect_transposed(csr_stream(kRows, kColumns, row_begin, column));
}

TEST(CsrStreamTest, PlacesAreAPermutation) {
  const Problem p(301, 231, 0.3, 1);
  std::vector<int> seen(p.places.size());
  for (const uint32_t place : p.places) ++seen[place];
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(CsrProductsTest, SumsDoNotDependOnTheNumberOfThreads) {
  const Problem p(1301, 331, 0.2, 130);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor y = p.product(p.bias.data());
  const std::vector<float> g = p.gradient(false);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(p.product(p.bias.data()).to_vector(), y.to_vector());
    EXPECT_EQ(p.gradient(false), g);
  }
  set_num_threads(before);
}

TEST(CsrProductsTest, TheGradientOfOneBlockOfRowsRunsOnSeveralThreadsByItsTiles) {
  const Problem p(300, 900, 0.5, 130);
  ASSERT_EQ(p.stream.blocks.size(), 1u);
  const int before = num_threads();
  set_num_threads(1);
  const std::vector<float> g = p.gradient(false), added = p.gradient(true);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    internal::take_most_threads();
    EXPECT_EQ(p.gradient(false), g);
    EXPECT_GT(csr_gradient_parts(p.stream, p.batch), 1);
    EXPECT_GT(internal::take_most_threads(), 1);
    EXPECT_EQ(p.gradient(true), added);
  }
  set_num_threads(before);
}

TEST(GatherTest, TakesValuesByPlace) {
  std::vector<float> into(3);
  gather(std::vector<float>{1, 2, 3, 4}, std::vector<uint32_t>{3, 0, 3}, into);
  EXPECT_EQ(into, (std::vector<float>{4, 1, 4}));
}

}  // namespace
}  // namespace lacuna::csr_test
