#include "lacuna/framework/layouts/layout_registry.h"

#include <gmock/gmock.h>

#include "throws.h"

namespace lacuna::layout_registry_test {
namespace {

TEST(LayoutRegistry, FindsTheBuiltInLayoutsByName) {
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    EXPECT_EQ(find_layout(layout->name()), layout);
  }
  EXPECT_EQ(find_layout("coo"), nullptr);
  EXPECT_THAT(layout_names(), testing::IsSupersetOf({"csr", "dense", "masked"}));
}

TEST(LayoutRegistry, ANameIsTakenOnce) {
  expect_throws<StateError>([] { add_layout(csr_layout()); },
                            "there is already a layout named 'csr'");
}

}  // namespace
}  // namespace lacuna::layout_registry_test
