// SemiSparse: masks of a dense master weight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/semi_sparse.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna::semi_sparse_test {
namespace {

// The two largest |w| of every four, by hand: one is dropped that two others of its four exceed.
std::vector<float> two_of_four(const std::vector<float>& w) {
  std::vector<float> kept = w;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto four = w.begin() + static_cast<std::ptrdiff_t>(i - i % 4);
    const auto exceeds = [&](float other) { return std::abs(other) > std::abs(w[i]); };
    if (std::count_if(four, four + 4, exceeds) >= 2) {
      kept[i] = 0.0f;
    }
  }
  return kept;
}

SemiSparse semi_sparse(int64_t every = 1, double decay = 0.0) {
  return SemiSparse({.pattern = PatternShape::nm(2, 4),
                     .param_filter = "fc1.weight",
                     .layout = "masked",  // what auto measures shall not decide on the rounding
                     .every = every,
                     .decay = decay});
}

// Masked, which counts how often its positions are listed: that takes several times as long as the
// rest of a step, whose masks stay bits.
class CountingLayout final : public DenseFallbackLayout {
 public:
  mutable int lists = 0;

  std::string_view name() const override { return "counting"; }
  std::shared_ptr<const PatternIndex> make_index(const Shape& shape,
                                                 const Positions& positions) const override {
    return masked_layout().make_index(shape, positions);
  }
  std::shared_ptr<const PatternIndex> make_index_of_mask(const Shape& shape,
                                                         const BitMask& mask) const override {
    return masked_layout().make_index_of_mask(shape, mask);
  }
  Positions positions(const Pattern& pattern) const override {
    ++lists;
    return masked_layout().positions(pattern);
  }
  int64_t stored_size(const Pattern& pattern) const override { return pattern.numel(); }
  void compact(const Pattern& pattern, std::span<const float> stored,
               std::span<float> elements) const override {
    masked_layout().compact(pattern, stored, elements);
  }
  void expand(const Pattern& pattern, std::span<const float> elements,
              std::span<float> stored) const override {
    masked_layout().expand(pattern, elements, stored);
  }
  Tensor to_dense(const Pattern& pattern, std::span<const float> values) const override {
    return masked_layout().to_dense(pattern, values);
  }
  void from_dense(const Pattern& pattern, std::span<const float> dense,
                  std::span<float> values) const override {
    masked_layout().from_dense(pattern, dense, values);
  }
  void prune(const Pattern& pattern, std::span<float> values) const override {
    masked_layout().prune(pattern, values);
  }
};

TEST(SemiSparse, ListsNoPositionsInAStep) {
  const CountingLayout counting;
  for (const PatternShape& pattern : {PatternShape::nm(2, 4), PatternShape::transposable_2_4(),
                                      PatternShape::nm(2, 4, 8), PatternShape::block(4, 4)}) {
    TestModel model, masked;
    SemiSparseOptions options{.pattern = pattern,
                              .sparsity = pattern.is_nm() ? SparsityTarget() : 0.5,
                              .param_filter = "fc1.weight",
                              .layout = counting};
    SemiSparse algorithm(options);
    options.layout = "masked";
    SemiSparse reference(options);
    model.apply(algorithm);
    masked.apply(reference);
    const int before = counting.lists;
    for (int step = 0; step < 3; ++step) {
      model.step();
      masked.step();
    }
    EXPECT_EQ(counting.lists, before) << pattern.to_string();
    EXPECT_EQ(whole(model.weight()), whole(masked.weight())) << pattern.to_string();
  }
}

TEST(SemiSparse, TrainsAMasterByTheGradientOfItsLargestPart) {
  // By hand, with SGD: u = 2:4 part of w; w ← w − lr ∂L/∂u, everywhere.
  TestModel by_hand, model;
  SemiSparse algorithm = semi_sparse();
  model.apply(algorithm);
  std::vector<float> master = by_hand.weight().to_dense().to_vector();
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(whole(model.weight()), two_of_four(master)) << step;
    by_hand.weight().assign(Tensor::from(by_hand.weight().shape(), two_of_four(master)));
    by_hand.forward_backward();
    // What Adam does to the used weight is what it does to the master: it sees the gradient alone.
    by_hand.weight().assign(Tensor::from(by_hand.weight().shape(), master));
    by_hand.optimizer->step();
    by_hand.optimizer->zero_grad();
    master = by_hand.weight().to_dense().to_vector();
    model.step();
  }
}

TEST(SemiSparse, KeepsAMaskForKStepsAndFollowsTheMasterWithin) {
  TestModel model;
  SemiSparse algorithm = semi_sparse(3);
  model.apply(algorithm);
  const Positions first = model.weight().pattern()->positions();
  const std::vector<float> before = whole(model.weight());
  model.step();
  EXPECT_EQ(model.weight().pattern()->positions(), first);
  EXPECT_NE(whole(model.weight()), before);
  for (int step = 0; step < 30; ++step) model.step();
  EXPECT_NE(model.weight().pattern()->positions(), first);
}

TEST(SemiSparse, SrSteDecaysWhatTheMaskExcludes) {
  TestModel plain, decayed;
  SemiSparse one = semi_sparse(100), other = semi_sparse(100, 0.5);
  plain.optimizer = std::make_unique<Adam>(plain.model.parameters(), AdamOptions{.lr = 0.0});
  decayed.optimizer = std::make_unique<Adam>(decayed.model.parameters(), AdamOptions{.lr = 0.0});
  plain.apply(one);
  decayed.apply(other);
  plain.step();
  decayed.step();
  // Adam's first moment is a tenth of the gradient.
  const auto moment = [](TestModel& m) {
    for (auto& [name, slot] : m.weight().slots()) {
      if (name.find("sq") == std::string::npos && name != "shadow") return slot.values.to_vector();
    }
    return std::vector<float>();
  };
  const std::vector<float> a = moment(plain), b = moment(decayed);
  const std::vector<float> w = plain.weight().slots().at("shadow").values.to_vector();
  const std::vector<float> used = whole(plain.weight());
  ASSERT_EQ(a.size(), w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(b[i] - a[i], used[i] == 0.0f ? 0.1f * 0.5f * w[i] : 0.0f, 1e-6f) << i;
  }
}

TEST(SemiSparse, SwapsLinearLayersAndGivesTheDenseMastersBack) {
  TestModel model;
  const std::vector<float> dense = whole(model.weight());
  auto swapped = swap_linear_with_semi_sparse(
      model.model, {{"fc1", {.pattern = PatternShape::nm(2, 4)}},
                    {"fc2.*", {.pattern = PatternShape::transposable_2_4()}}});
  EXPECT_EQ(whole(model.weight()), two_of_four(dense));
  EXPECT_EQ(model.weight("fc2.weight").pattern()->nnz(), 32);
  model.optimizer->apply(*swapped);
  for (int i = 0; i < 3; ++i) model.step();
  const std::vector<float> master = model.weight().slots().at("shadow").values.to_vector();
  swap_semi_sparse_with_linear(std::move(swapped));
  EXPECT_TRUE(model.weight().pattern()->is_dense());
  EXPECT_EQ(whole(model.weight()), master);
  EXPECT_FALSE(model.weight().slots().contains("shadow"));
  model.step();  // trains on, dense
  EXPECT_NE(whole(model.weight()), master);
  EXPECT_THAT(
      [&] {
        swap_linear_with_semi_sparse(model.model, {{"fc9", {}}});
      },
      ThrowsMessage<ConfigError>(testing::HasSubstr("'fc9' matches no linear layer")));
}

TEST(SemiSparse, PhasesSwapItOut) {
  register_builtins();
  TestModel model;
  const auto algorithm = configure(
      parse_yaml("{phases: [{until: 3, algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}}, "
                 "{algorithm: dense}]}",
                 "c.yaml"),
      0);
  model.apply(*algorithm);
  for (int i = 0; i < 2; ++i) model.step();
  EXPECT_EQ(model.weight().pattern()->nnz(), 96);
  model.step();
  EXPECT_EQ(model.weight().pattern()->nnz(), 192);
  int zeros = 0;
  for (const float w : whole(model.weight())) zeros += w == 0.0f ? 1 : 0;
  EXPECT_EQ(zeros, 0);  // the master, not its sparse part
  model.step();
}

TEST(SemiSparse, ResumesInAPhaseBeforeOrBehindIt) {
  register_builtins();
  const Config plan = parse_yaml(
      "{phases: [{until: 3, algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, decay: 0.01}, "
      "{until: 6, algorithm: dense}, "
      "{until: 9, algorithm: semi_sparse, pattern: {type: block, rows: 4, cols: 2}, sparsity: "
      "0.5}, "
      "{algorithm: static, sparsity: 0.75}]}",
      "c.yaml");
  for (const int before : {1, 3, 4, 6, 7, 9, 10}) {
    TestModel through, second;
    const auto straight = configure(plan.clone(), 0), resumed = configure(plan.clone(), 0);
    through.apply(*straight);
    second.apply(*resumed);
    for (int i = 0; i < before; ++i) through.step();
    second.model.load_state_dict(through.model.state_dict());
    resumed->load_state_dict(straight->state_dict());
    second.optimizer->load_state_dict(through.optimizer->state_dict());
    EXPECT_EQ(whole(second.weight()), whole(through.weight())) << before;
    for (int i = before; i < 12; ++i) {
      through.step();
      second.step();
    }
    EXPECT_EQ(whole(second.weight()), whole(through.weight())) << before;
  }
}

/// 132 → 68 → ReLU → 20 → ReLU → 8 on random data, its first two weights by an algorithm.
struct WiderRun {
  WiderRun(const std::string& pattern, const std::string& rest, const std::string& layout) {
    register_builtins();
    model.add<Linear>("fc1", {.in_features = 132, .out_features = 68});
    model.add<ReLU>("relu1");
    model.add<Linear>("fc2", {.in_features = 68, .out_features = 20});
    model.add<ReLU>("relu2");
    model.add<Linear>("fc3", {.in_features = 20, .out_features = 8});
    model.initialize(0);
    algorithm = configure(parse_yaml("{algorithm: semi_sparse, pattern: " + pattern + ", " + rest +
                                         "layout: " + layout +
                                         ", param_filter: [fc1.weight, "
                                         "fc2.weight]}",
                                     "c.yaml"),
                          0);
    model.apply(*algorithm);
    optimizer = std::make_unique<Adam>(model.parameters(), AdamOptions{.lr = 0.01});
    optimizer->apply(*algorithm);
  }
  void step(uint64_t number) {
    const CounterRng rng(number, "data");
    for (uint64_t part = 0; part < 2; ++part) {  // two micro-batches
      Tensor x = Tensor::empty(Shape{37, 132});
      std::vector<int64_t> classes;
      for (int64_t i = 0; i < x.numel(); ++i) {
        x.mutable_data()[i] = 2.0f * rng.uniform((part << 32) + static_cast<uint64_t>(i)) - 1.0f;
      }
      for (uint64_t i = 0; i < 37; ++i)
        classes.push_back(static_cast<int64_t>(rng.bits(90000 + 37 * part + i) % 8));
      backward(cross_entropy(model(Variable(x)), IndexTensor(Shape{37}, classes)));
    }
    optimizer->step();
    optimizer->zero_grad();
  }

  Sequential model;
  std::unique_ptr<SparsityAlgorithm> algorithm;
  std::unique_ptr<Adam> optimizer;
};

class SemiSparseLayouts : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(SemiSparseLayouts, TrainToTheSameNumbersAsMasked) {
  const auto [pattern, rest] = GetParam();
  for (const char* layout : {"auto", "csr", "nm"}) {
    WiderRun run(pattern, rest, layout), reference(pattern, rest, "masked");
    for (uint64_t step = 1; step <= 8; ++step) {
      run.step(step);
      reference.step(step);
      for (const char* name : {"fc1.weight", "fc2.weight"}) {
        const Parameter& found = *run.model.parameter(name);
        const Parameter& expected = *reference.model.parameter(name);
        ASSERT_EQ(found.mask(), expected.mask()) << layout << " " << name << " at " << step;
        const std::vector<float> a = whole(found), b = whole(expected);
        for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4f) << layout << i;
      }
      const auto updates = run.algorithm->last_update(), same = reference.algorithm->last_update();
      ASSERT_EQ(updates.size(), same.size());
      for (size_t i = 0; i < updates.size(); ++i) {
        EXPECT_EQ(updates[i].nnz, same[i].nnz);
        EXPECT_EQ(updates[i].dropped, same[i].dropped);
        EXPECT_EQ(updates[i].grown, same[i].grown);
        EXPECT_EQ(updates[i].ever_active, same[i].ever_active);
        EXPECT_EQ(updates[i].dead_rows, same[i].dead_rows);
        EXPECT_EQ(updates[i].dead_columns, same[i].dead_columns);
      }
    }
  }
}

TEST_P(SemiSparseLayouts, ResumeBitForBit) {
  const auto [pattern, rest] = GetParam();
  for (const char* layout : {"masked", "nm"}) {
    WiderRun through(pattern, rest, layout), first(pattern, rest, layout);
    WiderRun second(pattern, rest, layout);
    for (uint64_t step = 1; step <= 7; ++step) through.step(step);
    for (uint64_t step = 1; step <= 4; ++step) first.step(step);
    second.model.load_state_dict(first.model.state_dict());
    second.algorithm->load_state_dict(first.algorithm->state_dict());
    second.optimizer->load_state_dict(first.optimizer->state_dict());
    for (uint64_t step = 5; step <= 7; ++step) second.step(step);
    for (const ParameterPtr& p : through.model.parameters()) {
      EXPECT_EQ(whole(*second.model.parameter(p->name())), whole(*p)) << layout << p->name();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, SemiSparseLayouts,
    testing::Combine(testing::Values("{type: nm, n: 2, m: 4}", "{type: nm, n: 1, m: 4}",
                                     "{type: nm, n: 2, m: 4, transposable: true}",
                                     "{type: nm, n: 2, m: 4, group: 4}"),
                     testing::Values("", "every: 3, ", "decay: 0.001, ")));

TEST(SemiSparse, ResumesBitForBit) {
  const auto run = [](TestModel& m, int steps) {
    for (int i = 0; i < steps; ++i) m.step();
  };
  TestModel through, first, second;
  SemiSparse a = semi_sparse(4, 1e-3), b = semi_sparse(4, 1e-3), c = semi_sparse(4, 1e-3);
  through.apply(a);
  run(through, 11);
  first.apply(b);
  run(first, 6);
  second.apply(c);
  second.model.load_state_dict(first.model.state_dict());
  c.load_state_dict(b.state_dict());
  second.optimizer->load_state_dict(first.optimizer->state_dict());
  run(second, 5);
  EXPECT_EQ(whole(second.weight()), whole(through.weight()));
  EXPECT_EQ(second.weight().slots().at("shadow").values.to_vector(),
            through.weight().slots().at("shadow").values.to_vector());
}

}  // namespace
}  // namespace lacuna::semi_sparse_test
