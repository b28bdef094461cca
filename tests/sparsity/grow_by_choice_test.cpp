// Growth that is chosen, between those of SET and RigL.
#include "lacuna/sparsity/grow_by_choice.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "test_model.h"
#include "throws.h"

namespace lacuna::grow_by_choice_test {
namespace {

std::unique_ptr<SparsityAlgorithm> make(const std::string& yaml) {
  register_builtins();
  const Config config = parse_yaml(yaml, "c.yaml");
  auto algorithm = configure(config, 0);
  config.require_all_read();
  return algorithm;
}

// The values of both weights after ten steps.
std::vector<float> trained(const std::string& yaml) {
  const auto algorithm = make(yaml);
  TestModel t;
  t.apply(*algorithm);
  for (int step = 0; step < 10; ++step) t.step();
  std::vector<float> values = whole(t.weight());
  const std::vector<float> last = whole(t.weight("fc2.weight"));
  values.insert(values.end(), last.begin(), last.end());
  return values;
}

TEST(GrowByChoice, WithOneRuleIsSetOrRigL) {
  for (const std::string& keys :
       {std::string("update: {freq: 2}, drop_fraction: 0.5}"),
        std::string("update: {freq: 2}, balance_out_groups: 4}"),
        std::string("update: {freq: 3}, keep_alive: true, layout: csr}"),
        std::string("pattern: {type: block, rows: 2, cols: 2}, update: {freq: 2}}")}) {
    const std::string rest = ", sparsity: 0.7, " + keys;
    EXPECT_EQ(trained("{algorithm: dynamic, grow: random" + rest),
              trained("{algorithm: set" + rest));
    EXPECT_EQ(trained("{algorithm: dynamic, grow: {mixed: 0}" + rest),
              trained("{algorithm: set" + rest));
    EXPECT_EQ(trained("{algorithm: dynamic, grow: gradient" + rest),
              trained("{algorithm: rigl" + rest));
    EXPECT_EQ(trained("{algorithm: dynamic, grow: {mixed: 1.0}" + rest),
              trained("{algorithm: rigl" + rest));
    EXPECT_NE(trained("{algorithm: set" + rest), trained("{algorithm: rigl" + rest));
  }
  const std::string nm = ", pattern: {type: nm, n: 2, m: 4}, update: {freq: 2}}";
  EXPECT_EQ(trained("{algorithm: dynamic, grow: gradient" + nm), trained("{algorithm: rigl" + nm));
  EXPECT_EQ(trained("{algorithm: dynamic, grow: random" + nm), trained("{algorithm: set" + nm));
}

TEST(GrowByChoice, AMixtureGrowsItsShareByGradientAndTheRestElsewhere) {
  for (const double share : {0.25, 0.5, 0.9}) {
    TestModel t;
    GrowByChoice algorithm(
        {.common = {.sparsity = 0.7, .update = UpdateSchedule::every(1)}, .gradient_share = share});
    t.apply(algorithm);
    for (int step = 0; step < 3; ++step) {
      // The gradient of every position, by a copy that is dense.
      TestModel dense;
      for (const ParameterPtr& parameter : dense.model.parameters()) {
        parameter->assign(t.weight(parameter->name().c_str()).to_dense());
      }
      dense.forward_backward();
      const std::vector<float> gradient = dense.weight().gradient().to_vector();
      t.forward_backward();
      const std::vector<uint8_t> before = t.weight().mask().values;
      t.optimizer->step();
      const std::vector<uint8_t> after = t.weight().mask().values;
      t.optimizer->zero_grad();
      const int64_t nnz = t.weight().pattern()->nnz();
      ASSERT_EQ(nnz, target_nnz(0.7f, 192));
      const int64_t missing = nnz - kept_after_drop(0.3f, nnz);
      const auto by_gradient = static_cast<size_t>(share * static_cast<double>(missing));
      // Of the positions that were free and are the best by gradient, at least so many have grown:
      // dropped ones, which may come back, take some of the places.
      std::vector<size_t> free;
      for (size_t i = 0; i < before.size(); ++i) {
        if (before[i] == 0) free.push_back(i);
      }
      std::ranges::sort(
          free, [&](size_t a, size_t b) { return std::abs(gradient[a]) > std::abs(gradient[b]); });
      size_t best = 0, grown = 0;
      for (size_t place = 0; place < free.size(); ++place) {
        if (after[free[place]] == 0) continue;
        ++grown;
        best += place < by_gradient ? 1 : 0;
      }
      EXPECT_GE(best + static_cast<size_t>(missing) - grown, by_gradient) << share << " " << step;
      EXPECT_GT(grown, best) << share;  // others, at random
    }
  }
}

TEST(GrowByChoice, RefusesWhatCannotBe) {
  expect_throws<ConfigError>(
      [] { make("{algorithm: set, sparsity: 0.5, grow: gradient}"); },
      "grow: set has its own growth rule; to choose one, use algorithm: dynamic");
  expect_throws<ConfigError>([] { make("{algorithm: rigl, sparsity: 0.5, grow: {mixed: 0.5}}"); },
                             "rigl has its own growth rule");
  expect_throws<ConfigError>([] { make("{algorithm: dynamic, sparsity: 0.5, grow: momentum}"); },
                             "c.yaml:1:43: grow: expected 'random', 'gradient' or {mixed: the "
                             "share by gradient}");
  expect_throws<ConfigError>([] { make("{algorithm: dynamic, sparsity: 0.5, grow: {mixed: 2}}"); },
                             "grow.mixed");
  expect_throws<ConfigError>(
      [] { make("{algorithm: dynamic, grow: {mixed: 0.5}, pattern: {type: nm, n: 2, m: 4}}"); },
      "a mixed growth cannot be combined with a pattern");
  expect_throws<ConfigError>([] { GrowByChoice({.gradient_share = -0.5}); }, "must be in [0, 1]");
}

}  // namespace
}  // namespace lacuna::grow_by_choice_test
