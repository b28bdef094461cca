// How layouts store the weights of convolutions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/dense/convolution_sums.h"
#include "framework/kernels/test_values.h"
#include "framework/layouts/formats/convolution_weights.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/layouts/pattern.h"
#include "throws.h"

namespace lacuna::convolution_storage_test {
namespace {

TEST(CsrOfConvolutions, StoresTheNonzerosAscending) {
  for (const Shape& shape : weight_shapes()) {
    for (const double density : {0.0, 0.3, 1.1}) {
      SCOPED_TRACE(shape.to_string());
      const Positions positions = draw(shape, density);
      const PatternPtr pattern = Pattern::make(csr_layout(), shape, positions);
      EXPECT_EQ(pattern->nnz(), positions.count());
      EXPECT_EQ(pattern->stored_size(), positions.count());
      EXPECT_EQ(pattern->stored_shape(), (Shape{positions.count()}));
      EXPECT_EQ(pattern->positions(), positions);
      EXPECT_EQ(pattern->mask(), positions.to_mask());
      const PatternPtr of_mask = Pattern::make(csr_layout(), shape, positions.to_mask());
      EXPECT_EQ(of_mask->positions(), positions);
      EXPECT_GE(pattern->index_bytes(), 4 * positions.count());
    }
  }
}

// Stored arrays, elements and dense tensors turn into each other, in every layout.
TEST(LayoutsOfConvolutions, ConversionsRoundTrip) {
  for (const Shape& shape : weight_shapes()) {
    for (const double density : {0.0, 0.3, 1.1}) {
      const Positions positions = draw(shape, density);
      for (const Layout* layout : {&csr_layout(), &masked_layout(), &list_layout()}) {
        SCOPED_TRACE(shape.to_string() + " " + std::string(layout->name()));
        const PatternPtr pattern = Pattern::make(*layout, shape, positions);
        EXPECT_EQ(pattern->positions(), positions);
        const std::vector<float> elements = test::normal_values("elements", positions.count());
        std::vector<float> stored(static_cast<size_t>(pattern->stored_size()), NAN);
        layout->expand(*pattern, elements, stored);
        std::vector<float> back(elements.size());
        layout->compact(*pattern, stored, back);
        EXPECT_EQ(back, elements);
        const Tensor dense = layout->to_dense(*pattern, stored);
        EXPECT_EQ(dense.shape(), shape);
        std::vector<float> expected(static_cast<size_t>(shape.numel()), 0.0f);
        size_t next = 0;
        positions.for_each(
            [&](int64_t flat) { expected[static_cast<size_t>(flat)] = elements[next++]; });
        EXPECT_EQ(dense.to_vector(), expected);
        // Elements outside of the pattern are dropped.
        std::vector<float> whole = expected;
        for (float& value : whole) value = value == 0.0f ? 9.0f : value;
        std::vector<float> taken(stored.size(), NAN);
        layout->from_dense(*pattern, whole, taken);
        EXPECT_EQ(taken, stored);
      }
    }
  }
}

// Masters, momenta and flags in any bits move as they are.
TEST(CsrOfConvolutions, FloatsAreMovedAndNotComputedWith) {
  const Shape shape{3, 2, 3, 3};
  const PatternPtr pattern = Pattern::make(csr_layout(), shape, draw(shape, 0.6));
  std::vector<float> elements(static_cast<size_t>(pattern->nnz()));
  for (size_t i = 0; i < elements.size(); ++i) {
    const uint32_t bits = 0x7fc00000u + static_cast<uint32_t>(i) * 3;  // NaNs of many kinds
    std::memcpy(&elements[i], &bits, sizeof bits);
  }
  std::vector<float> stored(elements.size()), back(elements.size());
  csr_layout().expand(*pattern, elements, stored);
  csr_layout().compact(*pattern, stored, back);
  EXPECT_EQ(std::memcmp(back.data(), elements.data(), elements.size() * sizeof(float)), 0);
}

TEST(LayoutsOfConvolutions, ArraysMoveFromOneToAnother) {
  const Shape shape{5, 4, 3, 3};
  const Positions old = draw(shape, 0.5);
  std::vector<int64_t> some;
  old.for_each([&](int64_t flat) {
    if (flat % 3 != 0) some.push_back(flat);
  });
  some.push_back(shape.numel() / shape[0]);  // in the row that had none
  std::ranges::sort(some);
  const Positions kept = Positions::of(shape, some);
  const Layout* layouts[] = {&csr_layout(), &masked_layout(), &list_layout()};
  for (const Layout* from : layouts) {
    for (const Layout* into : layouts) {
      SCOPED_TRACE(std::string(from->name()) + " to " + std::string(into->name()));
      const PatternPtr a = Pattern::make(*from, shape, old), b = Pattern::make(*into, shape, kept);
      Tensor array = Tensor::empty(a->stored_shape());
      const Tensor dense = test::normal_tensor("array", shape);
      from->from_dense(*a, dense.storage(), array.mutable_storage());
      const PatternMove move(*a, *b, a->positions(), b->positions());
      EXPECT_EQ(move.kept(), kept.count() - 1);
      const Tensor moved = into->to_dense(*b, move(array).storage());
      for (int64_t i = 0; i < shape.numel(); ++i) {
        const bool is_kept = old.contains(i) && kept.contains(i);
        ASSERT_EQ(moved.data()[i], is_kept ? dense.data()[i] : 0.0f);
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::convolution_storage_test
