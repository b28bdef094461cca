// The layouts that algorithms choose, keep, and move to when a checkpoint was saved in another.
#include <gmock/gmock.h>

#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/static.h"
#include "sparsity/test_model.h"

namespace lacuna::layout_state_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;
using testing::Pair;

std::unique_ptr<SparsityAlgorithm> make_static(LayoutOption layout, const char* glob = "*.weight") {
  return std::make_unique<Static>(SparsityOptions{
      .sparsity = 0.75, .param_filter = ParameterFilter(glob), .layout = std::move(layout)});
}

const Layout& layout_of(TestModel& m, const char* name) {
  return m.weight(name).pattern()->layout();
}

TEST(DensityLimits, DecideUnderAuto) {
  TestModel m;
  const auto automatic = make_static("auto");
  automatic->compression().compress_below = {{{"fc1.weight"}, 0.2}, {{"fc2.weight"}, 0.3}};
  m.apply(*automatic);  // density 0.25
  EXPECT_EQ(&layout_of(m, "fc1.weight"), &masked_layout());
  EXPECT_EQ(&layout_of(m, "fc2.weight"), &csr_layout());
  TestModel other;
  const auto asked = make_static("csr");
  asked->compression().compress_below = {{{"fc1.weight"}, 0.0}};
  other.apply(*asked);
  EXPECT_EQ(&layout_of(other, "fc1.weight"), &csr_layout());
}

TEST(DensityLimits, AreMeasuredWhereTheyAreMissingAndSharedByAGroup) {
  TestModel m;
  Group group;
  group.add(ParameterFilter("fc1.weight"), make_static("auto", "fc1.weight"));
  group.add(ParameterFilter("fc2.weight"), make_static("masked", "fc2.weight"));
  m.apply(group);
  EXPECT_THAT(group.compression().compress_below,
              ElementsAre(Pair(DensityLimitKey{"fc1.weight"}, AllOf(Ge(0.0), Le(1.0)))));
}

TEST(RestoreLayouts, MovesValuesAndStatesToTheLayoutThatIsAskedFor) {
  for (const Layout* saved : {&masked_layout(), &csr_layout()}) {
    TestModel m, plain;
    const auto algorithm = make_static(*saved), same = make_static(*saved);
    m.apply(*algorithm);
    plain.apply(*same);
    for (int i = 0; i < 3; ++i) m.step(), plain.step();
    const StateDict model = m.model.state_dict(), optimizer = m.optimizer->state_dict();
    const Layout& other = saved == &csr_layout() ? masked_layout() : csr_layout();
    TestModel loaded;
    const auto wanted = make_static(other);
    loaded.apply(*wanted);
    loaded.model.load_state_dict(model);
    loaded.optimizer->load_state_dict(optimizer);
    wanted->load_state_dict(algorithm->state_dict());
    EXPECT_EQ(&layout_of(loaded, "fc1.weight"), saved);
    wanted->restore_layouts();
    EXPECT_EQ(&layout_of(loaded, "fc1.weight"), &other);
    for (int i = 0; i < 3; ++i) loaded.step(), plain.step();
    const std::vector<float> a = loaded.weight().to_dense().to_vector();
    const std::vector<float> b = plain.weight().to_dense().to_vector();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f);
  }
}

TEST(RestoreLayouts, LeavesThoseUnderAutoAsTheyAre) {
  TestModel m;
  const auto automatic = make_static("auto");
  m.apply(*automatic);
  Parameter& weight = m.weight();
  weight.set_pattern(Pattern::make(masked_layout(), weight.shape(), weight.pattern()->positions()));
  automatic->restore_layouts();
  EXPECT_EQ(&layout_of(m, "fc1.weight"), &masked_layout());
}

// As checkpoints of format 1 hold them.
TEST(EverActive, IsReadFromAByteForEachPositionToo) {
  TestModel m;
  const auto algorithm = make_static("masked", "fc1.weight");
  m.apply(*algorithm);
  StateDict state = algorithm->state_dict();
  const std::string name = "ever_active/fc1.weight";
  const StateDict packed = state;
  std::vector<uint8_t> bytes(16 * 12);
  m.weight().pattern()->positions().for_each(
      [&](int64_t flat) { bytes[static_cast<size_t>(flat)] = 1; });
  state.set(name, ByteArray{{16, 12}, bytes});
  algorithm->load_state_dict(state);
  EXPECT_EQ(algorithm->state_dict().get<ByteArray>(name), packed.get<ByteArray>(name));
}

}  // namespace
}  // namespace lacuna::layout_state_test
