// What holds of every update, whatever the weights: counts, what survives, what grows, and that
// nothing comes out of positions that are pruned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "sparsity/masks/by_definition.h"
#include "test_model.h"

namespace lacuna::properties_test {
namespace {

constexpr const char* kWeights[] = {"fc1.weight", "fc2.weight"};

/// How an update may change a mask.
enum class Change { None, Shrinks, KeepsItsCount, Any };

struct Property {
  const char* name;
  const char* yaml;
  Change change;
};

std::unique_ptr<SparsityAlgorithm> from_yaml(const std::string& yaml) {
  register_builtins();
  return configure(parse_yaml(yaml, "c.yaml"), 0);
}

/// Everything of a parameter that is aligned to its mask.
struct Snapshot {
  explicit Snapshot(const Parameter& p) : mask(p.pattern()->mask()) {
    arrays["values"] = p.to_dense().to_vector();
    for (const auto& [name, slot] : p.slots()) arrays[name] = whole(p, slot.values);
  }
  BitMask mask;
  std::map<std::string, std::vector<float>> arrays;
};

void expect_survivors_and_zeros(const Snapshot& before, const Snapshot& after) {
  ASSERT_EQ(before.arrays.size(), 3u);  // values and Adam's two
  for (const auto& [name, array] : after.arrays) {
    const std::vector<float>& old = before.arrays.at(name);
    for (int64_t i = 0; i < after.mask.size(); ++i) {
      const auto k = static_cast<size_t>(i);
      const bool survives = before.mask.test(i) && after.mask.test(i);
      ASSERT_EQ(array[k], survives ? old[k] : 0.0f) << name << ", position " << i;
    }
  }
}

class UpdateProperties : public testing::TestWithParam<Property> {};

// The optimizer's step and the update one after the other, to see the one without the other.
TEST_P(UpdateProperties, HoldAtEveryStep) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestModel t(seed);
    const auto algorithm = from_yaml(GetParam().yaml);
    t.apply(*algorithm);
    algorithm->autoupdate = false;
    int changes = 0;
    for (int step = 1; step <= 9; ++step) {
      t.forward_backward();
      t.optimizer->step();
      std::vector<Snapshot> before;
      for (const char* name : kWeights) before.emplace_back(t.weight(name));
      algorithm->update(*t.optimizer);
      t.optimizer->zero_grad();
      for (size_t i = 0; i < before.size(); ++i) {
        const Snapshot after(t.weight(kWeights[i]));
        SCOPED_TRACE(std::string(kWeights[i]) + ", seed " + std::to_string(seed) + ", step " +
                     std::to_string(step));
        expect_survivors_and_zeros(before[i], after);
        const int64_t common = count_common(before[i].mask, after.mask);
        changes += common == before[i].mask.count() && common == after.mask.count() ? 0 : 1;
        if (GetParam().change == Change::Shrinks) {
          EXPECT_EQ(common, after.mask.count());
        }
        if (GetParam().change == Change::KeepsItsCount) {
          EXPECT_EQ(after.mask.count(), before[i].mask.count());
        }
      }
    }
    EXPECT_EQ(changes > 0, GetParam().change != Change::None);
    EXPECT_EQ(algorithm->step(), 9);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, UpdateProperties,
    testing::Values(
        Property{"Static", "0.7", Change::None},
        Property{"Gmp", "{algorithm: gmp, sparsity: {type: linear, init: 0, slope: 0.09}}",
                 Change::Shrinks},
        Property{"Saliency",
                 "{algorithm: saliency, sparsity: {type: linear, init: 0, slope: 0.09}}",
                 Change::Shrinks},
        Property{"Set", "{algorithm: set, sparsity: 0.7, update: {freq: 2}}",
                 Change::KeepsItsCount},
        Property{"SetInGroups", "{algorithm: set, sparsity: 0.7, balance_out_groups: 4}",
                 Change::KeepsItsCount},
        Property{"RigL", "{algorithm: rigl, sparsity: 0.7, update: {freq: 2}}",
                 Change::KeepsItsCount},
        Property{"RigLInGroups", "{algorithm: rigl, sparsity: 0.7, balance_in_groups: 4}",
                 Change::KeepsItsCount},
        Property{"SetInRows", "{algorithm: set, sparsity: 0.7, balance_out_groups: rows}",
                 Change::KeepsItsCount},
        Property{"RigLInRows", "{algorithm: rigl, sparsity: 0.7, balance_out_groups: rows}",
                 Change::KeepsItsCount},
        Property{"RigLByErk",
                 "{algorithm: rigl, sparsity: 0.7, distribution: erk, drop_fraction: 1.0}",
                 Change::KeepsItsCount},
        Property{"Dynamic",
                 "{algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.7, update: {freq: 2}}",
                 Change::KeepsItsCount},
        Property{"SRigL", "{algorithm: srigl, sparsity: 0.7, min_salient: 0.9, update: {freq: 2}}",
                 Change::Any},
        Property{"Snfs", "{algorithm: snfs, sparsity: 0.7, redistribute: false}",
                 Change::KeepsItsCount},
        Property{"SnfsRedistributed", "{algorithm: snfs, sparsity: 0.7, drop_fraction: 0.5}",
                 Change::Any},
        Property{"AcDc", "{algorithm: acdc, sparsity: 0.7, update: {freq: 2}}", Change::Any},
        Property{"Phases",
                 "phases: [{until: 5, algorithm: set, sparsity: 0.5, update: {freq: 2}}, "
                 "{until: 7, algorithm: dense}, {algorithm: rigl, sparsity: 0.8}]",
                 Change::Any}),
    [](const auto& test) { return test.param.name; });

// By the counting rule of the step's target: int((1 − s)·numel), per group where there are groups.
TEST(Counts, AreThoseOfTheTarget) {
  for (const double sparsity : {0.0, 0.1, 1.0 / 3.0, 0.5, 0.77, 0.9, 0.95, 0.999}) {
    for (const char* algorithm : {"static", "set", "rigl", "ste", "snfs"}) {
      TestModel t;
      const auto own = from_yaml(
          std::string("{algorithm: ") + algorithm + ", sparsity: " + Config(sparsity).text() +
          (std::string(algorithm) == "snfs" ? ", redistribute: false}" : "}"));
      t.apply(*own);
      for (int step = 0; step < 3; ++step) {
        for (const char* name : kWeights) {
          ASSERT_EQ(t.weight(name).pattern()->nnz(),
                    target_nnz(static_cast<float>(sparsity), t.weight(name).numel()))
              << algorithm << " " << sparsity << " " << name << " after step " << step;
        }
        t.step();
      }
    }
  }
}

// In four groups of rows, and in each row.
TEST(Counts, OfEachGroupAreEqual) {
  for (const char* algorithm : {"static", "set", "rigl"}) {
    for (const bool each_row : {false, true}) {
      TestModel t;
      const auto own =
          from_yaml(std::string("{algorithm: ") + algorithm +
                    ", sparsity: 0.7, balance_out_groups: " + (each_row ? "rows}" : "4}"));
      t.apply(*own);
      for (int step = 0; step < 4; ++step) {
        for (const char* name : kWeights) {
          const Shape& shape = t.weight(name).shape();
          const int64_t count = each_row ? shape[0] : 4;
          const GroupIndex groups(ScoreGroups::rows(count), shape);
          for (int64_t group = 0; group < count; ++group) {
            int64_t nonzeros = 0;
            for (int64_t place = 0; place < groups.size(); ++place) {
              nonzeros += t.weight(name).pattern()->mask().test(groups.flat(group, place)) ? 1 : 0;
            }
            ASSERT_EQ(nonzeros, target_nnz(0.7f, groups.size()))
                << algorithm << " " << name << " group " << group << " after step " << step;
          }
        }
        t.step();
      }
    }
  }
}

TEST(Counts, FollowAScheduleToItsEnd) {
  struct Ending {
    const char* yaml;
    double last;
  };
  for (const Ending& ending :
       {Ending{"{type: polynomial, init: 0.1, final: 0.83, start: 1, end: 7}", 0.83},
        Ending{"{type: cosine, init: 0.1, minimum: 0.83, half_period: 8}", 0.83}}) {
    for (const char* algorithm : {"gmp", "saliency", "ste"}) {
      TestModel t;
      const Schedule schedule = Schedule::from_config(parse_yaml(ending.yaml, "s"));
      const auto own = from_yaml(std::string("{algorithm: ") + algorithm +
                                 ", update: {freq: 2}, sparsity: " + ending.yaml + "}");
      t.apply(*own);
      for (int step = 1; step <= 8; ++step) {
        t.step();
        const int updated = step - step % 2;
        ASSERT_EQ(t.weight().pattern()->nnz(), target_nnz(schedule.at(updated), 192))
            << algorithm << " " << ending.yaml << " after step " << step;
      }
      EXPECT_EQ(t.weight().pattern()->nnz(), target_nnz(static_cast<float>(ending.last), 192));
    }
  }
}

// A dropped position may come back at once, and then keeps what it had: it is a survivor.
TEST(RigLGrowth, TakesTheLargestDenseGradients) {
  TestModel t, twin;
  const auto algorithm =
      from_yaml("{algorithm: rigl, sparsity: 0.7, update: {freq: 2}, drop_fraction: 0.5}");
  t.apply(*algorithm);
  algorithm->autoupdate = false;
  int64_t grown = 0;
  for (int step = 1; step <= 8; ++step) {
    for (const ParameterPtr& parameter : twin.model.parameters()) {
      parameter->assign(t.weight(parameter->name().c_str()).to_dense());
    }
    twin.optimizer->zero_grad();
    twin.forward_backward();
    t.forward_backward();
    t.optimizer->step();
    const BitMask before = t.weight().pattern()->mask();
    const GroupIndex flat(ScoreGroups::flat(), Shape{192});
    const BitMask dropped = by_definition::top_k(
        magnitudes(whole(t.weight())), kept_after_drop(0.5f, before.count()), before, flat);
    const BitMask expected = by_definition::grow_maximum(
        magnitudes(twin.weight().gradient().storage()), before.count(), dropped, flat);
    algorithm->update(*t.optimizer);
    t.optimizer->zero_grad();
    EXPECT_TRUE(t.weight().pattern()->mask() == (step % 2 == 0 ? expected : before)) << step;
    grown += before.count() - count_common(before, t.weight().pattern()->mask());
  }
  EXPECT_GT(grown, 0);
}

class NanInPrunedGradients : public testing::TestWithParam<const char*> {};

// The gradient of every pruned position is NaN: neither values nor states take anything of it, and
// growth by gradient takes such a position only when no other is left.
TEST_P(NanInPrunedGradients, DoNotLeak) {
  TestModel t;
  const auto algorithm = from_yaml(GetParam());
  t.apply(*algorithm);
  for (int step = 0; step < 6; ++step) {
    t.forward_backward();
    const BitMask mask = t.weight().pattern()->mask();
    Tensor poison = Tensor::zeros(t.weight().shape());
    for (int64_t i = 0; i < poison.numel(); ++i) {
      if (!mask.test(i)) poison.mutable_data()[i] = std::numeric_limits<float>::quiet_NaN();
    }
    t.weight().accumulate(poison);
    t.optimizer->step();
    t.optimizer->zero_grad();
    const Snapshot after(t.weight());
    for (const auto& [name, array] : after.arrays) {
      ASSERT_TRUE(std::ranges::all_of(array, [](float v) { return std::isfinite(v); }))
          << name << " after step " << step;
    }
    for (const float value : t.model(Variable(t.x)).value().to_vector()) {
      ASSERT_TRUE(std::isfinite(value)) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, NanInPrunedGradients,
                         testing::Values("0.5", "{algorithm: set, sparsity: 0.5}",
                                         "{algorithm: rigl, sparsity: 0.5, update: {freq: 2}}",
                                         "{algorithm: snfs, sparsity: 0.5, update: {freq: 2}}",
                                         "{algorithm: gmp, sparsity: {type: linear, init: 0.1, "
                                         "slope: 0.1}}",
                                         "{algorithm: acdc, sparsity: 0.5, update: {freq: 4}}"));

}  // namespace
}  // namespace lacuna::properties_test
