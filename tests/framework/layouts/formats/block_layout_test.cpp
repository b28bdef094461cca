#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/layouts/pattern.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::block_layout_test {
namespace {

/// A format, and a pattern of it: tiles at random, of each m columns of tiles at most n.
struct Format {
  std::string name;
  int64_t rows = 1, columns = 1;  // of a tile
  int64_t n = 1, m = 1;

  Positions positions(const Shape& shape, double density) const {
    const CounterRng rng(5, name);
    BitMask mask = BitMask::zeros(shape.numel());
    const int64_t all_columns = matrix_columns(shape);
    for (int64_t r = 0; r < shape[0]; ++r) {
      int64_t in_group = 0;
      for (int64_t c = 0; c < all_columns; ++c) {
        const int64_t tile = r / rows * (all_columns / columns) + c / columns;
        if (c % m == 0) in_group = 0;
        const bool exists = rng.uniform(static_cast<uint64_t>(tile)) < density;
        if (!exists || (m > 1 && in_group == n)) continue;
        ++in_group;
        mask.set(r * all_columns + c);
      }
    }
    return Positions::of(shape, mask);
  }
};

std::vector<Format> formats() {
  return {{"nm 2:4 g8", 8, 1, 2, 4},   {"nm 2:4 g4", 4, 1, 2, 4}, {"nm 1:4 g16", 16, 1, 1, 4},
          {"nm 2:8 g12", 12, 1, 2, 8}, {"nm 3:5 g3", 3, 1, 3, 5}, {"nm 1:16 g2", 2, 1, 1, 16},
          {"nm 4:4 g8", 8, 1, 4, 4},   {"block 4x4", 4, 4},       {"block 16x16", 16, 16},
          {"block 8x4", 8, 4},         {"block 8x1", 8, 1},       {"block 12x3", 12, 3},
          {"block 1x8", 1, 8},         {"block 3x4", 3, 4},       {"block 1x1", 1, 1},
          {"block 4x12", 4, 12},       {"block 2x4", 2, 4},       {"block 3x16", 3, 16},
          {"block 5x3", 5, 3},         {"block 1x4", 1, 4},       {"block 1x2", 1, 2}};
}

class BlockLayouts : public testing::TestWithParam<Format> {
 protected:
  const Layout& layout() const { return *find_layout(GetParam().name); }
  // Rows and columns that are whole tiles, the given number of them.
  Shape shape(int64_t row_tiles, int64_t column_tiles) const {
    return Shape{row_tiles * GetParam().rows, column_tiles * GetParam().columns * GetParam().m};
  }
};

// All that a pattern computes, beside what the masked layout computes for the same positions.
void expect_same_as_masked(const Layout& layout, const Shape& shape, const Positions& positions,
                           int64_t batch) {
  const int64_t out = matrix_rows(shape), in = matrix_columns(shape);
  const PatternPtr mine = Pattern::make(layout, shape, positions);
  const PatternPtr masked = Pattern::make(masked_layout(), shape, positions);
  const Tensor dense = random_tensor(shape, "w"), bias = random_tensor(Shape{out}, "b");
  Tensor values = Tensor::empty(Shape{mine->stored_size()});
  layout.from_dense(*mine, dense.storage(), values.mutable_storage());
  Tensor all = Tensor::empty(shape);
  masked_layout().from_dense(*masked, dense.storage(), all.mutable_storage());
  ASSERT_EQ(layout.to_dense(*mine, values.storage()).to_vector(), all.to_vector());
  const Tensor x = random_tensor(Shape{batch, in}, "x"), dy = random_tensor(Shape{batch, out}, "d");
  const WeightView weight{.pattern = *mine, .values = values.storage()};
  const WeightView reference{.pattern = *masked, .values = all.storage()};
  // Float sums of some hundred products below 1, in another order.
  const auto expect_near = [](const Tensor& found, const Tensor& expected) {
    const std::vector<float> a = found.to_vector(), b = expected.to_vector();
    ASSERT_EQ(found.shape(), expected.shape());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
  };
  expect_near(layout.forward(weight, x, bias), masked_layout().forward(reference, x, bias));
  expect_near(layout.forward(weight, x.to(Order::BatchSlabs), Tensor()),
              masked_layout().forward(reference, x, Tensor()));
  expect_near(layout.input_gradient(weight, dy), masked_layout().input_gradient(reference, dy));
  Tensor gradient = Tensor::full(values.shape(), 9.0f), expected = Tensor::zeros(shape);
  layout.weight_gradient(*mine, dy, x, Accumulate::No, gradient.mutable_storage());
  layout.weight_gradient(*mine, dy, x, Accumulate::Yes, gradient.mutable_storage());
  for (int i = 0; i < 2; ++i) {
    masked_layout().weight_gradient(*masked, dy, x, Accumulate::Yes, expected.mutable_storage());
  }
  expect_near(layout.to_dense(*mine, gradient.storage()), expected);
}

TEST_P(BlockLayouts, ComputesAsMaskedDoes) {
  for (const double density : {0.0, 0.3, 1.0}) {
    for (const int64_t batch : {1, 5, 70, 130}) {
      const Shape shape = this->shape(5, 7);
      expect_same_as_masked(layout(), shape, GetParam().positions(shape, density), batch);
    }
  }
}

// A mask gives what its positions give, where rows are whole words of it and where they are not.
TEST_P(BlockLayouts, IsMadeOfAMaskAsOfPositions) {
  for (const int64_t column_tiles : {64, 13}) {
    const Shape shape = this->shape(3, column_tiles);
    const Positions positions = GetParam().positions(shape, 0.4);
    BitMask mask = positions.to_mask();
    const PatternPtr expected = Pattern::make(layout(), shape, positions);
    const PatternPtr pattern = Pattern::make(layout(), shape, mask);
    EXPECT_EQ(pattern->positions(), positions);
    EXPECT_EQ(pattern->mask(), mask);
    const Tensor dense = random_tensor(shape, "dense");
    std::vector<float> values(static_cast<size_t>(positions.count()), NAN), same = values;
    layout().from_dense(*pattern, dense.storage(), values);
    layout().from_dense(*expected, dense.storage(), same);
    EXPECT_EQ(values, same);
    if (GetParam().rows * GetParam().columns == 1) continue;  // any mask will do
    mask = BitMask::zeros(shape.numel());
    mask.set(shape.numel() - 1);  // a part of a tile
    EXPECT_THROW(Pattern::make(layout(), shape, mask), ShapeError);
  }
}

TEST_P(BlockLayouts, KeepsPositionsAndElements) {
  for (const double density : {0.0, 0.4, 1.0}) {
    const Shape shape = this->shape(11, 13);
    const Positions positions = GetParam().positions(shape, density);
    const PatternPtr pattern = Pattern::make(layout(), shape, positions);
    EXPECT_EQ(pattern->positions(), positions);
    EXPECT_EQ(pattern->stored_size(), positions.count());
    EXPECT_GT(pattern->index_bytes(), 0);
    const Tensor elements = random_tensor(Shape{pattern->nnz()}, "e");
    Tensor stored = Tensor::empty(elements.shape()), back = Tensor::empty(elements.shape());
    layout().expand(*pattern, elements.storage(), stored.mutable_storage());
    layout().compact(*pattern, stored.storage(), back.mutable_storage());
    EXPECT_EQ(back.to_vector(), elements.to_vector());
  }
}

TEST_P(BlockLayouts, HasOneObjectUnderItsName) {
  EXPECT_EQ(layout().name(), GetParam().name);
  EXPECT_EQ(find_layout(GetParam().name), &layout());
}

INSTANTIATE_TEST_SUITE_P(Formats, BlockLayouts, testing::ValuesIn(formats()));

TEST(BlockLayout, ConvolutionWeightsAreMatrices) {
  const Shape shape{16, 2, 3, 4};
  const Format format{"block 4x4", 4, 4};
  const Positions positions = format.positions(shape, 0.5);
  expect_same_as_masked(layout_for(PatternShape::block(4, 4)), Shape{16, 24},
                        format.positions(Shape{16, 24}, 0.5), 3);
  EXPECT_EQ(Pattern::make(layout_for(PatternShape::block(4, 4)), shape, positions)->positions(),
            positions);
}

// The stored order, as docs/development/kernels.md states it: cell by cell, within a cell column by
// column.
TEST(BlockLayout, ValuesOfACellAreStoredByColumns) {
  const Shape shape{8, 8};
  BitMask mask = BitMask::zeros(64);
  for (int64_t r = 4; r < 8; ++r) {
    for (int64_t c = 0; c < 4; ++c) mask.set(r * 8 + c);
  }
  const PatternPtr pattern =
      Pattern::make(layout_for(PatternShape::block(4, 4)), shape, Positions::of(shape, mask));
  Tensor dense = Tensor::zeros(shape), stored = Tensor::empty(Shape{16});
  for (int64_t i = 0; i < 64; ++i) dense.mutable_data()[i] = static_cast<float>(i);
  pattern->layout().from_dense(*pattern, dense.storage(), stored.mutable_storage());
  EXPECT_EQ(stored.to_vector(), (std::vector<float>{32, 40, 48, 56, 33, 41, 49, 57,  //
                                                    34, 42, 50, 58, 35, 43, 51, 59}));
}

TEST(BlockLayout, MovesValuesBetweenPatterns) {
  const Shape shape{16, 16};
  const Format format{"nm 2:4 g8", 8, 1, 2, 4};
  const Positions positions = format.positions(shape, 0.5);
  const PatternPtr csr = Pattern::make(csr_layout(), shape, positions);
  const PatternPtr grouped = Pattern::make(layout_for(PatternShape::nm(2, 4, 8)), shape, positions);
  const Tensor dense = random_tensor(shape, "w");
  Tensor values = Tensor::empty(Shape{csr->stored_size()});
  csr_layout().from_dense(*csr, dense.storage(), values.mutable_storage());
  const Tensor moved = PatternMove(*csr, *grouped, positions, positions)(values);
  EXPECT_EQ(grouped->layout().to_dense(*grouped, moved.storage()).to_vector(),
            csr_layout().to_dense(*csr, values.storage()).to_vector());
}

TEST(BlockLayout, NamesAreOfPatterns) {
  EXPECT_EQ(find_layout("nm 2:4 g8"), &layout_for(PatternShape::nm(2, 4, 8)));
  EXPECT_EQ(find_layout("block 3x5"), &layout_for(PatternShape::block(3, 5)));
  EXPECT_EQ(find_layout("block 0x4"), nullptr);
  EXPECT_EQ(find_layout("unstructured"), nullptr);
  EXPECT_EQ(&layout_for(PatternShape()), &csr_layout());
}

TEST(BlockLayout, RefusesWhatIsNotWholeTiles) {
  const auto make = [](const Layout& layout, const Shape& shape, std::vector<int64_t> flat) {
    return [&layout, shape, flat] { Pattern::make(layout, shape, Positions::of(shape, flat)); };
  };
  const Layout &block = layout_for(PatternShape::block(4, 4)),
               &nm = layout_for(PatternShape::nm(1, 4, 2));
  expect_throws<ShapeError>(make(block, Shape{10, 8}, {}),
                            "layout block 4x4 cannot store shape [10, 8]: 10 rows");
  expect_throws<ShapeError>(make(block, Shape{8, 10}, {}), "[8, 10]: 10 columns are not divisible");
  expect_throws<ShapeError>(make(nm, Shape{3, 8}, {}), "3 rows are not divisible by 2");
  expect_throws<ShapeError>(make(nm, Shape{2, 6}, {}), "6 columns are not divisible by 4");
  expect_throws<ShapeError>(make(block, Shape{4, 8}, {0, 1, 2}), "a part of the tile at column 0");
  expect_throws<ShapeError>(make(block, Shape{4, 8}, {1, 2, 3, 4}), "a part of the tile");
  expect_throws<ShapeError>(make(block, Shape{4, 8}, {0, 1, 2, 3}),
                            "row 1 must have the positions");
  expect_throws<ShapeError>(make(nm, Shape{2, 8}, {1, 10}),
                            "row 1 must have the positions of row 0");
  expect_throws<ShapeError>(make(nm, Shape{2, 8}, {4, 7, 12, 15}),
                            "more than 1 positions in the 4 columns from 4 on");
}

}  // namespace
}  // namespace lacuna::block_layout_test
