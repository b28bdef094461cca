// Parts of blocks, by which a gradient's work is shared out among threads.
#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/csr/csr_gradient.hpp"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "random_values.h"

namespace lacuna::csr_parts_test {
namespace {

CsrStream random_stream(int64_t rows, int64_t columns, double density) {
  const CounterRng rng(13, "parts");
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (rng.uniform(static_cast<uint64_t>(r * columns + c)) >= density) continue;
      column.push_back(static_cast<uint32_t>(c));
    }
    row_begin.push_back(static_cast<int64_t>(column.size()));
  }
  return csr_stream(rows, columns, row_begin, column);
}

struct Gradients {
  std::vector<float> of_weights, of_bias;
  bool operator==(const Gradients&) const = default;
};

TEST(CsrPartsTest, TheGradientOfOneTileRunsOnSeveralThreadsByItsRows) {
  constexpr int64_t kBatch = 700;  // one part
  const Tensor dy = random_tensor(Shape{kBatch, 384}, "dy").to(Order::BatchSlabs);
  const Tensor x = random_tensor(Shape{kBatch, 64}, "x").to(Order::BatchSlabs);
  for (const double density : {0.2, 1.0}) {  // of 1, all rows are in one group
    const CsrStream stream = random_stream(384, 64, density);
    ASSERT_EQ(stream.tiles.size(), 1u);
    const auto gradients = [&](Accumulate accumulate) {
      Gradients g{std::vector<float>(static_cast<size_t>(stream.nnz), 10.0f),
                  std::vector<float>(384)};
      csr_gradient(stream, dy.data(Order::BatchSlabs), x.data(Order::BatchSlabs), kBatch,
                   accumulate, g.of_weights.data(), g.of_bias.data());
      return g;
    };
    const int before = num_threads();
    set_num_threads(1);
    const Gradients written = gradients(Accumulate::No), added = gradients(Accumulate::Yes);
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      internal::take_most_threads();
      EXPECT_EQ(gradients(Accumulate::No), written);
      EXPECT_GT(internal::take_most_threads(), 1);
      EXPECT_EQ(gradients(Accumulate::Yes), added);
    }
    set_num_threads(before);
  }
}

TEST(CsrPartsTest, TheGradientByPartsOfTheBatchIsTheSameOnAnyThreads) {
  constexpr int64_t kBatch = 1060;
  const Tensor dy = random_tensor(Shape{kBatch, 384}, "dy").to(Order::BatchSlabs);
  const Tensor x = random_tensor(Shape{kBatch, 64}, "x").to(Order::BatchSlabs);
  const CsrStream stream = random_stream(384, 64, 0.3);
  const auto gradients = [&] {
    Gradients g{std::vector<float>(static_cast<size_t>(stream.nnz)), std::vector<float>(384)};
    csr_gradient(stream, dy.data(Order::BatchSlabs), x.data(Order::BatchSlabs), kBatch,
                 Accumulate::No, g.of_weights.data(), g.of_bias.data());
    return g;
  };
  const int before = num_threads();
  set_num_threads(1);
  const Gradients alone = gradients();
  for (const int threads : {2, 3, 7, 200}) {
    set_num_threads(threads);
    EXPECT_EQ(gradients(), alone) << threads;
  }
  set_num_threads(before);
}

std::vector<int64_t> entries_of(const CsrStream& stream, const CsrBlock& part) {
  std::vector<int64_t> entries;
  for (int64_t t = part.first_tile; t < part.end_tile; ++t) {
    const CsrTile& tile = stream.tiles[static_cast<size_t>(t)];
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup& whole = stream.groups[static_cast<size_t>(g)];
      const CsrGroup group = part.clipped(whole);
      EXPECT_EQ((group.first_row - whole.first_row) * whole.length,
                group.first_value - whole.first_value);
      for (int64_t i = 0; i < group.rows; ++i) entries.push_back(group.first_row + i);
    }
  }
  return entries;
}

TEST(CsrPartsTest, HaveEachRowOfATileOnce) {
  for (const CsrStream& stream :
       {random_stream(301, 231, 0.3), random_stream(1301, 331, 0.2), random_stream(40, 30, 1.0),
        random_stream(7, 5, 0.0), random_stream(0, 4, 0.5)}) {
    for (const CsrCutAt cut_at : {CsrCutAt::Rows, CsrCutAt::Groups}) {
      for (const int64_t parts : {1, 2, 3, 9}) {
        for (const CsrBlock& block : stream.blocks) {
          std::vector<int64_t> of_parts;
          for (int64_t i = 0; i < parts; ++i) {
            const CsrBlock part = csr_part(stream, block, i, parts, cut_at);
            EXPECT_EQ(part.end_row, block.end_row);
            const std::vector<int64_t> entries = entries_of(stream, part);
            of_parts.insert(of_parts.end(), entries.begin(), entries.end());
          }
          EXPECT_EQ(of_parts, entries_of(stream, block));
        }
      }
    }
  }
}

TEST(CsrPartsTest, KeepPairsOfRowsTogether) {
  CsrStream stream = random_stream(384, 128, 0.3);
  internal::pair_all_rows(stream, {});
  for (int64_t i = 1; i < 7; ++i) {
    const CsrBlock part = csr_part(stream, stream.blocks[0], i, 7, CsrCutAt::Rows);
    for (const CsrGroup& group : stream.groups) {
      const CsrGroup clipped = part.clipped(group);
      if (clipped.rows == 0) continue;
      EXPECT_EQ((clipped.first_row - group.first_row) % 2, 0);
    }
  }
}

}  // namespace
}  // namespace lacuna::csr_parts_test
