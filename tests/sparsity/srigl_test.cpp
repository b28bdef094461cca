// SRigL: its invariants, and its rule on matrices by hand.
#include "lacuna/sparsity/srigl.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convolution_model.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "test_model.h"
#include "throws.h"

namespace lacuna::srigl_test {
namespace {

std::unique_ptr<SparsityAlgorithm> make_srigl(const std::string& keys) {
  register_builtins();
  const Config config = parse_yaml("{algorithm: srigl, " + keys + "}", "c.yaml");
  auto algorithm = configure(config, 0);
  config.require_all_read();
  return algorithm;
}

std::vector<int64_t> nonzeros_of_rows(const Parameter& parameter) {
  const Positions positions = parameter.pattern()->positions();
  std::vector<int64_t> counts;
  for (int64_t row = 0; row < positions.rows(); ++row) {
    counts.push_back(static_cast<int64_t>(positions.row(row).size()));
  }
  return counts;
}

// Every active row has the same number of nonzeros, and all together have the target, but for the
// rounding. *Returns* the rows that have none.
int64_t expect_constant_fan_in(const Parameter& parameter, double sparsity) {
  const std::vector<int64_t> counts = nonzeros_of_rows(parameter);
  std::set<int64_t> different(counts.begin(), counts.end());
  const auto ablated = std::count(counts.begin(), counts.end(), 0);
  different.erase(0);
  EXPECT_EQ(different.size(), 1u) << parameter.name();
  const auto active = static_cast<int64_t>(counts.size()) - ablated;
  const double target = (1.0 - sparsity) * static_cast<double>(parameter.numel());
  EXPECT_NEAR(static_cast<double>(parameter.pattern()->nnz()), target,
              0.5 * static_cast<double>(active) + 1.0)
      << parameter.name();
  return ablated;
}

TEST(SRigL, ActiveRowsHaveOneFanInAndAblatedOnesNone) {
  for (const double min_salient : {0.0, 0.3, 0.8, 1.0}) {
    for (const char* keys : {"update: {freq: 1}, drop_fraction: 0.5, layout: csr",
                             "update: {freq: 1}, layout: masked, init_method: topk"}) {
      const auto algorithm =
          make_srigl("sparsity: 0.7, min_salient: " + Config(min_salient).text() + ", " + keys);
      TestModel t;
      t.apply(*algorithm);
      int64_t most = 0;
      for (int step = 0; step < 12; ++step) {
        const int64_t ablated = expect_constant_fan_in(t.weight(), 0.7);
        most = std::max(most, ablated);
        EXPECT_EQ(expect_constant_fan_in(t.weight("fc2.weight"), 0.7), 0);  // the outputs
        if (step > 0) {
          EXPECT_EQ(algorithm->last_update().at(0).dead_rows, ablated);
        }
        t.step();
        expect_zero_outside(t.weight());
      }
      if (min_salient != 0.3) {
        EXPECT_EQ(most > 0, min_salient > 0.0) << min_salient << " " << keys;
      }
    }
  }
}

TEST(SRigL, FiltersOfConvolutionsAreRows) {
  const auto algorithm =
      make_srigl("sparsity: 0.6, min_salient: 0.9, update: {freq: 1}, drop_fraction: 0.5");
  ConvolutionModel t;
  t.model.apply(*algorithm);
  t.optimizer->apply(*algorithm);
  for (int step = 0; step < 6; ++step) {
    for (const ParameterPtr& parameter : algorithm->parameters()) {
      expect_constant_fan_in(*parameter, 0.6);
    }
    t.step();
  }
}

// Positions, the largest score first; of equal ones the lower position.
std::vector<size_t> in_order(std::vector<size_t> positions, const std::vector<float>& scores) {
  std::ranges::stable_sort(
      positions, [&](size_t a, size_t b) { return std::abs(scores[a]) > std::abs(scores[b]); });
  return positions;
}

struct Matrix {
  std::vector<float> values, gradient;
  std::vector<uint8_t> mask;
  size_t rows, columns;

  std::vector<size_t> positions(size_t row, uint8_t present,
                                const std::vector<uint8_t>& among) const {
    std::vector<size_t> some;
    const size_t begin = row == rows ? 0 : row * columns, end = row == rows ? rows : row + 1;
    for (size_t i = begin; i < end * columns; ++i) {
      if (among[i] == present) some.push_back(i);
    }
    return some;
  }
};

// Section 3.1 of the paper, step by step.
std::vector<uint8_t> by_the_paper(const Matrix& x, size_t target, size_t kept_count,
                                  double min_salient) {
  const auto fan_in = [&](size_t active) {
    return std::min(x.columns, static_cast<size_t>(std::lround(static_cast<double>(target) /
                                                               static_cast<double>(active))));
  };
  std::vector<uint8_t> kept(x.mask.size()), salient, result(x.mask.size());
  std::vector<size_t> order = in_order(x.positions(x.rows, 1, x.mask), x.values);
  for (size_t i = 0; i < kept_count; ++i) kept[order[i]] = 1;
  salient = kept;
  order = in_order(x.positions(x.rows, 0, kept), x.gradient);
  for (size_t i = 0; i + kept_count < target; ++i) salient[order[i]] = 1;
  std::vector<std::pair<size_t, size_t>> fewest;  // ranks of rows: the most salient first
  for (size_t row = 0; row < x.rows; ++row) {
    fewest.push_back({x.columns - x.positions(row, 1, salient).size(), row});
  }
  std::ranges::sort(fewest);
  const size_t wanted =
      std::max<size_t>(1, static_cast<size_t>(min_salient * static_cast<double>(fan_in(x.rows))));
  std::vector<size_t> active;
  for (const auto& [lacks, row] : fewest) {
    const bool is_needed = active.size() * x.columns < target;
    if (is_needed || x.columns - lacks >= wanted) active.push_back(row);
  }
  const size_t each = fan_in(active.size());
  for (const size_t row : active) {
    size_t count = 0;
    for (const size_t i : in_order(x.positions(row, 1, kept), x.values)) {
      if (count < each) result[i] = 1, ++count;
    }
    for (const size_t i : in_order(x.positions(row, 0, result), x.gradient)) {
      if (count < each) result[i] = 1, ++count;
    }
  }
  return result;
}

TEST(SRigL, UpdatesAreThoseOfThePaper) {
  for (const double min_salient : {0.3, 0.9, 1.0}) {
    TestModel t;
    SRigL algorithm({.common = {.sparsity = 0.7,
                                .update = UpdateSchedule::every(1),
                                .drop_fraction = Schedule(0.4)},
                     .min_salient = min_salient});
    algorithm.autoupdate = false;
    t.apply(algorithm);
    bool has_ablated = false;
    for (int step = 0; step < 10; ++step) {
      TestModel dense;
      for (const ParameterPtr& parameter : dense.model.parameters()) {
        parameter->assign(t.weight(parameter->name().c_str()).to_dense());
      }
      dense.forward_backward();
      t.forward_backward();
      t.optimizer->step();
      const Matrix x{whole(t.weight()), dense.weight().gradient().to_vector(),
                     t.weight().mask().values, 16, 12};
      const auto nnz = t.weight().pattern()->nnz();
      const std::vector<uint8_t> expected =
          by_the_paper(x, 57, static_cast<size_t>(kept_after_drop(0.4f, nnz)), min_salient);
      algorithm.update(*t.optimizer);
      t.optimizer->zero_grad();
      ASSERT_EQ(t.weight().mask().values, expected) << min_salient << ", step " << step;
      has_ablated |= algorithm.last_update().at(0).dead_rows > 0;
    }
    EXPECT_TRUE(has_ablated) << min_salient;
  }
}

TEST(SRigL, InheritsMasksOfOtherPhases) {
  const auto algorithm = [] {
    register_builtins();
    return configure(parse_yaml("phases: [{until: 3, algorithm: set, sparsity: 0.5, update: "
                                "{freq: 1}}, {algorithm: srigl, sparsity: 0.7, update: {freq: 2}}]",
                                "c.yaml"),
                     0);
  }();
  TestModel t;
  t.apply(*algorithm);
  for (int step = 0; step < 8; ++step) {
    t.step();
    if (step >= 3) expect_constant_fan_in(t.weight(), 0.7);
  }
}

TEST(SRigL, BeginsDenseWhereStepZeroIsNoUpdate) {
  const auto algorithm = make_srigl("sparsity: 0.7, update: {freq: 3, start: 2}");
  TestModel t;
  t.apply(*algorithm);
  EXPECT_EQ(t.weight().pattern()->nnz(), 192);
  for (int step = 0; step < 2; ++step) t.step();
  expect_constant_fan_in(t.weight(), 0.7);
}

TEST(SRigL, RefusesWhatDoesNotGoWithAConstantFanIn) {
  const auto refused = [](const std::string& keys, const std::string& message) {
    expect_throws<ConfigError>([&] { make_srigl("sparsity: 0.5, " + keys); }, message);
  };
  refused("balance_out_groups: 2",
          "srigl: a balance of groups cannot be combined with a constant fan-in");
  refused("pattern: {type: block, rows: 2, cols: 2}", "srigl: a pattern cannot be combined");
  refused("keep_alive: true", "srigl: keep_alive cannot be combined");
  refused("init_method: checkerboard", "init_method 'checkerboard' (take random, topk or inherit)");
  refused("min_salient: 1.5", "min_salient");
}

}  // namespace
}  // namespace lacuna::srigl_test
