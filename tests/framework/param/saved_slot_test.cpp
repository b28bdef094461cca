#include "lacuna/framework/param/saved_slot.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "lacuna/framework/core/bit_mask.h"

namespace lacuna::saved_slot_test {
namespace {

using testing::ElementsAre;

// 1 to 6 in [2, 3], of which the mask keeps 1, 3, 5 and 6.
ParameterPtr make(const Layout& layout) {
  BitMask mask = BitMask::ones(6);
  mask.reset(1);
  mask.reset(3);
  auto parameter = std::make_shared<Parameter>(Shape{2, 3}, Initializer::constant(0.0));
  parameter->set_pattern(&layout == &masked_layout()
                             ? Pattern::masked({2, 3}, mask)
                             : Pattern::make(layout, {2, 3}, Positions::of({2, 3}, mask)));
  parameter->assign(Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  return parameter;
}

TEST(SavedSlot, IsReadInWhicheverLayout) {
  for (const Layout* from : {&masked_layout(), &csr_layout()}) {
    const ParameterPtr source = make(*from);
    const Tensor saved = slot_to_saved(*source, {source->values()});
    if (from == &csr_layout()) {
      EXPECT_THAT(saved.to_vector(), ElementsAre(1, 3, 5, 6));
    } else {
      EXPECT_THAT(saved.to_vector(), ElementsAre(1, 0, 3, 0, 5, 6));
    }
    EXPECT_FALSE(saved.shares_storage_with(source->values()));
    for (const Layout* to : {&masked_layout(), &csr_layout()}) {
      const ParameterPtr target = make(*to);
      EXPECT_THAT(shapes_of_saved_slot(*target, false), testing::Contains(saved.shape()));
      const Tensor back = slot_from_saved(*target, saved, false);
      EXPECT_EQ(back.to_vector(), target->values().to_vector());
    }
  }
}

TEST(SavedSlot, DenseOnesHaveTheParametersShapeInEveryLayout) {
  const ParameterPtr parameter = make(csr_layout());
  const Tensor whole = Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(slot_to_saved(*parameter, {whole, true}).to_vector(), whole.to_vector());
  EXPECT_THAT(shapes_of_saved_slot(*parameter, true), ElementsAre(Shape{2, 3}));
  EXPECT_EQ(slot_from_saved(*parameter, whole, true).to_vector(), whole.to_vector());
}

}  // namespace
}  // namespace lacuna::saved_slot_test
