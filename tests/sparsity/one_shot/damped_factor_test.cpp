// Damping that rises until a factorization succeeds, and how it is told of.
#include "lacuna/sparsity/one_shot/damped_factor.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::damped_factor_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Ten times 1e-6, in binary, is 9.999999999999999e-06: nobody's damping.
TEST(DampedFactor, MessagesShowDampingInTheShortestForm) {
  std::vector<std::string> messages;
  const double enough = factor_damped(
      "layer 'fc1': ", 0.0, [](double damping) { return damping > 5e-6; }, messages);
  EXPECT_NEAR(enough, 1e-5, 1e-10);
  EXPECT_THAT(messages, ElementsAre(HasSubstr("is singular with damping 0: damping is raised to "
                                              "1e-05; more")));
  messages.clear();
  factor_damped(
      "", 0.01, [](double damping) { return damping > 0.5; }, messages);
  EXPECT_THAT(messages, ElementsAre(HasSubstr("with damping 0.01: damping is raised to 1; more")));
}

TEST(DampedFactor, TheLastErrorShowsItSoToo) {
  std::vector<std::string> messages;
  expect_throws<DataError>(
      [&] {
        factor_damped(
            "layer 'fc1': ", raised(1e-6), [](double) { return false; }, messages);
      },
      "with any damping from 1e-05 to 100; check the calibration inputs, give other examples "
      "(`calibration`), normalize the data, or leave the layer out of param_filter");
}

}  // namespace
}  // namespace lacuna::damped_factor_test
