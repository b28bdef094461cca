#include "lacuna/framework/kernels/rowwise/class_tile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::class_tile_test {
namespace {

// Logits [examples, classes] cut into tiles of so many classes, in slabs.
std::vector<Tensor> tiles_of(const Tensor& logits, int64_t size) {
  const int64_t examples = logits.shape()[0], classes = logits.shape()[1];
  std::vector<Tensor> tiles;
  for (int64_t first = 0; first < classes; first += size) {
    const int64_t count = std::min(size, classes - first);
    Tensor tile = Tensor::empty(Shape{examples, count});
    for (int64_t i = 0; i < examples; ++i) {
      std::copy_n(logits.data() + i * classes + first, count, tile.mutable_data() + i * count);
    }
    tiles.push_back(tile.to(Order::BatchSlabs));
  }
  return tiles;
}

ClassTileShape shape_of(const Tensor& tile) { return {tile.shape()[0], tile.shape()[1]}; }

std::vector<ExponentialSum> sums_of(const std::vector<Tensor>& tiles) {
  std::vector<ExponentialSum> sums(static_cast<size_t>(tiles[0].shape()[0]));
  for (const Tensor& tile : tiles) {
    add_exponentials(shape_of(tile), tile.data(Order::BatchSlabs), sums);
  }
  return sums;
}

TEST(ClassTile, SumsAndSoftmaxAreThoseOfWholeRows) {
  for (const int64_t examples : {1, 5, 63, 64, 65, 130}) {
    for (const int64_t classes : {1, 7, 1023, 1025, 2100}) {
      const Tensor logits = test::normal_tensor("logits", Shape{examples, classes}, 4.0);
      const std::vector<Tensor> tiles = tiles_of(logits, 1030);
      const std::vector<ExponentialSum> sums = sums_of(tiles);
      std::vector<float> largest, factor;
      for (const ExponentialSum& sum : sums) {
        largest.push_back(sum.largest);
        factor.push_back(static_cast<float>(2.0 / sum.sum));
      }
      std::vector<double> total;
      for (int64_t i = 0; i < examples; ++i) {
        const float* row = logits.data() + i * classes;
        const float most = *std::max_element(row, row + classes);
        EXPECT_EQ(sums[static_cast<size_t>(i)].largest, most);
        total.push_back(std::accumulate(row, row + classes, 0.0, [&](double sum, float x) {
          return sum + std::exp(static_cast<double>(x) - most);
        }));
        EXPECT_NEAR(sums[static_cast<size_t>(i)].sum, total.back(), 2e-6 * total.back());
      }
      int64_t first = 0;
      for (const Tensor& tile : tiles) {
        Tensor scaled = tile.clone();
        // Padding is written, whatever it was.
        scaled_exponentials(shape_of(tile), largest, factor,
                            scaled.mutable_data(Order::BatchSlabs));
        const Tensor rows = scaled.to(Order::RowMajor);
        const int64_t count = tile.shape()[1];
        for (int64_t i = 0; i < examples; ++i) {
          for (int64_t c = 0; c < count; ++c) {
            const double x = logits.data()[i * classes + first + c];
            const auto at = static_cast<size_t>(i);
            ASSERT_NEAR(rows.data()[i * count + c], 2.0 * std::exp(x - largest[at]) / total[at],
                        4e-6);
          }
        }
        Tensor cleared = scaled.clone();
        cleared.clear_padding();
        EXPECT_TRUE(
            std::ranges::equal(std::as_const(scaled).storage(), std::as_const(cleared).storage()));
        first += count;
      }
    }
  }
}

TEST(ClassTile, ANanMakesItsSumNan) {
  Tensor logits = Tensor::full(Shape{3, 20}, 1.0f);
  logits.mutable_data()[25] = NAN;
  const std::vector<ExponentialSum> sums = sums_of(tiles_of(logits, 8));
  EXPECT_NEAR(sums[0].sum, 20.0, 1e-5);
  EXPECT_TRUE(std::isnan(sums[1].sum));
  EXPECT_NEAR(sums[2].sum, 20.0, 1e-5);
}

TEST(ClassTile, TheLargestAreThoseOfASort) {
  for (const int64_t examples : {1, 64, 70}) {
    const int64_t classes = 400, count = 5;
    Tensor logits = test::normal_tensor("largest", Shape{examples, classes});
    for (int64_t i = 0; i < logits.numel(); ++i) {  // equals are common
      logits.mutable_data()[i] = std::round(4.0f * logits.data()[i]) / 4.0f;
    }
    logits.mutable_data()[3] = NAN;
    LargestLogits largest(examples, count);
    int64_t first = 0;
    for (const Tensor& tile : tiles_of(logits, 150)) {
      take_largest(shape_of(tile), tile.data(Order::BatchSlabs), first, largest);
      first += tile.shape()[1];
    }
    for (int64_t i = 0; i < examples; ++i) {
      const float* row = logits.data() + i * classes;
      std::vector<int64_t> order(static_cast<size_t>(classes));
      std::iota(order.begin(), order.end(), int64_t{0});
      std::erase_if(order, [&](int64_t c) { return std::isnan(row[c]); });
      std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return row[a] > row[b]; });
      for (int64_t k = 0; k < count; ++k) {
        const auto at = static_cast<size_t>(i * count + k);
        ASSERT_EQ(largest.classes[at], order[static_cast<size_t>(k)]) << i << " " << k;
        ASSERT_EQ(largest.logits[at], row[largest.classes[at]]);
      }
    }
  }
}

TEST(ClassTile, MissingClassesAreMinusOne) {
  const Tensor logits = Tensor::from(Shape{1, 2}, std::vector<float>{-3.0f, 2.0f});
  LargestLogits largest(1, 3);
  take_largest({1, 2}, logits.to(Order::BatchSlabs).data(Order::BatchSlabs), 7, largest);
  EXPECT_EQ(largest.classes, (std::vector<int64_t>{8, 7, -1}));
}

TEST(ClassTile, ResultsDoNotDependOnTheNumberOfThreads) {
  const Tensor logits = test::normal_tensor("threads", Shape{130, 5000}, 3.0);
  const std::vector<Tensor> tiles = tiles_of(logits, 4100);
  const int before = num_threads();
  std::vector<std::vector<ExponentialSum>> all;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    all.push_back(sums_of(tiles));
  }
  set_num_threads(before);
  for (size_t i = 0; i < all[0].size(); ++i) {
    EXPECT_EQ(all[0][i].sum, all[1][i].sum);
    EXPECT_EQ(all[0][i].largest, all[1][i].largest);
  }
}

}  // namespace
}  // namespace lacuna::class_tile_test
