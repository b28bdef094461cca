// The 2:4 selection by magnitude against the reference implementation's masks.
#include <string>

#include "golden/golden.h"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"

namespace lacuna::nm_selection_test {
namespace {

TEST(GoldenNmSelection, MagnitudeMasksAgreeExactly) {
  const Hdf5File file = golden::open("post_training.h5");
  int count = 0;
  for (const std::string& name : golden::cases(file, "magnitude_2_4")) {
    const std::string path = "magnitude_2_4/" + name;
    const Tensor weight = file.read_floats(path + "/weight");
    const NmMatrixForm form{
        .rows = weight.shape()[0], .columns = weight.shape()[1], .pattern = PatternShape::nm(2, 4)};
    const BitMask expected = BitMask::from_bytes(file.read_bytes(path + "/mask"));
    EXPECT_EQ(nm_select(form, weight.storage()), expected) << path;
    NmMatrix matrix;
    Tensor values = Tensor::empty(Shape{form.stored()});
    nm_select_values(form, weight.storage(), matrix, values.mutable_storage());
    nm_for_each(matrix, [&](int64_t slot, int64_t row, int64_t column) {
      ASSERT_TRUE(expected.test(row * form.columns + column)) << path;
      ASSERT_EQ(values.data()[slot], weight.data()[row * form.columns + column]) << path;
    });
    ++count;
  }
  golden::report("post_training.h5: magnitude_2_4", count);
}

}  // namespace
}  // namespace lacuna::nm_selection_test
