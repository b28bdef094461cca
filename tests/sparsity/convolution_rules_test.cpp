// Every algorithm's masks of a convolution's weight are those that its rules give position by
// position, within every pattern.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lacuna/sparsity/options/counting.hpp"
#include "sparsity/convolution_model.h"
#include "sparsity/masks/by_hand.h"

namespace lacuna::convolution_rules_test {
namespace {

by_hand::Scores magnitudes_of(const Tensor& a) {
  by_hand::Scores scores;
  for (const float value : a.storage()) scores.push_back(std::abs(value));
  return scores;
}

by_hand::Scores magnitudes_of_product(const Tensor& a, const Tensor& b) {
  return magnitudes_of(magnitudes_of_products(a, b));
}

/// What a rule knows at an update.
struct Update {
  BitMask mask;          // as it was
  Tensor weight = {};    // after the optimizer's step
  Tensor gradient = {};  // of all positions, dense
  Tensor master = {};    // undefined where there is none
  Tensor momentum = {};  // SNFS's
  int64_t count = 0;     // units aimed at
};

using Rule = std::function<BitMask(const by_hand::Weight& by, const Update& u)>;

BitMask dropped(const by_hand::Weight& by, const Update& u) {
  const int64_t units = u.mask.count() / by.unit_size();
  return by.keep(u.mask, magnitudes_of(u.weight), kept_after_drop(0.3f, units));
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> all = {
      {"static", [](const by_hand::Weight&, const Update& u) { return u.mask; }},
      {"gmp",
       [](const by_hand::Weight& by, const Update& u) {
         return by.prune_gradually(u.mask, magnitudes_of(u.weight), u.count);
       }},
      {"saliency",
       [](const by_hand::Weight& by, const Update& u) {
         return by.prune_gradually(u.mask, magnitudes_of_product(u.weight, u.gradient), u.count);
       }},
      {"ste",
       [](const by_hand::Weight& by, const Update& u) {
         return by.prune_gradually(BitMask::ones(u.mask.size()), magnitudes_of(u.master), u.count);
       }},
      {"semi_sparse",
       [](const by_hand::Weight& by, const Update& u) {
         return by.grow_maximum(BitMask::zeros(u.mask.size()), magnitudes_of(u.master), u.count);
       }},
      {"acdc",
       [](const by_hand::Weight& by, const Update& u) {
         const BitMask full = BitMask::ones(u.mask.size());
         if (u.mask.count() < u.mask.size()) return full;
         return by.prune_gradually(full, magnitudes_of(u.weight), u.count);
       }},
      {"rigl",
       [](const by_hand::Weight& by, const Update& u) {
         return by.grow_maximum(dropped(by, u), magnitudes_of(u.gradient), u.count);
       }},
      {"snfs",
       [](const by_hand::Weight& by, const Update& u) {
         return by.grow_maximum(dropped(by, u), magnitudes_of(u.momentum), u.count);
       }},
  };
  return all;
}

struct Structure {
  const char* yaml;
  PatternShape shape;
};

const std::vector<Structure>& structures() {
  static const std::vector<Structure> all = {
      {"", PatternShape::block(1, 1)},
      {"pattern: {type: nm, n: 2, m: 4}", PatternShape::nm(2, 4)},
      {"pattern: {type: nm, n: 1, m: 2, group: 4}", PatternShape::nm(1, 2, 4)},
      {"pattern: {type: nm, n: 2, m: 4, transposable: true}", PatternShape::transposable_2_4()},
      {"pattern: {type: block, rows: 2, cols: 4}", PatternShape::block(2, 4)},
      {"pattern: {type: block, rows: 4, cols: 2, norm: l2}",
       PatternShape::block(4, 2, PatternShape::Norm::L2)},
  };
  return all;
}

// The algorithm's entry. N:M says how sparse, others are given it.
std::string entry_of(const std::string& algorithm, const Structure& s) {
  const bool has_pattern = s.yaml[0] != '\0';
  std::string text = "{algorithm: " + algorithm + ", param_filter: conv.weight";
  if (algorithm == "gmp" || algorithm == "saliency" || algorithm == "ste") {
    text += ", sparsity: {type: polynomial, init: 0, final: 0.5, start: 0, end: 8}";
  } else if (!has_pattern || s.shape.is_block()) {
    text += ", sparsity: 0.7";
  }
  if (algorithm != "static" && algorithm != "semi_sparse" && algorithm != "snip") {
    text += ", update: {freq: 2}";
  }
  if (algorithm == "static") text += ", init_method: topk";
  if (algorithm == "snfs") text += ", redistribute: false";
  if (algorithm == "snip") text += ", scope: layer";
  if (algorithm == "semi_sparse") text += ", decay: 0.01";
  return text + (has_pattern ? ", " + std::string(s.yaml) : "") + "}";
}

bool updates_at(const std::string& algorithm, int64_t step) {
  return algorithm == "semi_sparse" || (algorithm != "static" && step % 2 == 0);
}

using Case = std::tuple<std::string, size_t, std::string>;
class ConvolutionRules : public testing::TestWithParam<Case> {};

TEST_P(ConvolutionRules, AreFollowedPositionByPosition) {
  const auto& [name, structure, layout] = GetParam();
  const Structure& s = structures()[structure];
  if (name == "semi_sparse" && !s.shape.is_nm() && s.yaml[0] == '\0') return;  // needs a pattern
  ConvolutionModel run(entry_of(name, s), layout);
  run.algorithm->autoupdate = false;
  Parameter& weight = run.weight();
  const by_hand::Weight by(s.shape, weight.shape());
  Tensor momentum = Tensor::zeros(weight.shape());
  EXPECT_EQ(weight.pattern()->layout().name(), layout);
  for (int64_t step = 1; step <= 8; ++step) {
    Update u{.mask = MaskSet(weight.pattern()).bits()};
    u.gradient = run.forward_backward();
    run.optimizer->step();
    ASSERT_EQ(MaskSet(weight.pattern()).bits(), u.mask);
    u.weight = weight.to_dense();
    if (weight.slots().contains("shadow")) u.master = weight.slots().at("shadow").values.clone();
    for (int64_t i = 0; i < momentum.numel(); ++i) {
      float& m = momentum.mutable_data()[i];
      m = 0.9f * m + (1.0f - 0.9f) * u.gradient.data()[i];
    }
    u.momentum = momentum;
    run.algorithm->update(*run.optimizer);
    run.optimizer->zero_grad();
    const auto target = static_cast<float>(run.algorithm->target_sparsity(weight));
    u.count = target_nnz(target, by.unit_count());
    const BitMask expected = updates_at(name, step) ? rules().at(name)(by, u) : u.mask;
    ASSERT_EQ(MaskSet(weight.pattern()).bits(), expected) << "step " << step;
    const bool is_on_its_way =
        name == "gmp" || name == "saliency" || name == "ste" || name == "acdc";
    EXPECT_TRUE(by.fits(expected) || (is_on_its_way && s.shape.is_nm())) << "step " << step;
    EXPECT_EQ(weight.pattern()->layout().name(), layout);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionRules,
                         testing::Combine(testing::Values("static", "gmp", "saliency", "ste",
                                                          "semi_sparse", "acdc", "rigl", "snfs"),
                                          testing::Range(size_t{0}, size_t{6}),
                                          testing::Values("masked", "csr")),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  std::to_string(std::get<1>(test.param)) + std::get<2>(test.param);
                         });

TEST(ConvolutionRules, StaticMasksAreTheLargestWeights) {
  for (const Structure& s : structures()) {
    ConvolutionModel untouched, run(entry_of("static", s), "csr");
    const by_hand::Weight by(s.shape, run.weight().shape());
    const int64_t count = by.unit_count() * 3 / 10;
    EXPECT_EQ(
        MaskSet(run.weight().pattern()).bits(),
        by.grow_maximum(BitMask::zeros(384), magnitudes_of(untouched.weight().to_dense()), count))
        << s.shape.description();
  }
}

TEST(ConvolutionRules, SnipKeepsTheMostSensitiveAtItsFirstStep) {
  for (const Structure& s : structures()) {
    ConvolutionModel run(entry_of("snip", s), "csr");
    const by_hand::Weight by(s.shape, run.weight().shape());
    const Tensor weight = run.weight().to_dense();
    const Tensor gradient = run.forward_backward(2);
    run.optimizer->step();
    const int64_t units = by.unit_count();
    const int64_t count = s.shape.is_nm() ? units / 2 : target_nnz(0.7f, units);
    EXPECT_EQ(MaskSet(run.weight().pattern()).bits(),
              by.keep(BitMask::ones(384), magnitudes_of_product(weight, gradient), count))
        << s.shape.description();
  }
}

TEST(ConvolutionRules, SetKeepsTheLargestAndGrowsWithinThePattern) {
  for (const Structure& s : structures()) {
    ConvolutionModel run(entry_of("set", s), "csr");
    run.algorithm->autoupdate = false;
    const by_hand::Weight by(s.shape, run.weight().shape());
    for (int64_t step = 1; step <= 6; ++step) {
      Update u{.mask = MaskSet(run.weight().pattern()).bits()};
      run.forward_backward();
      run.optimizer->step();
      u.weight = run.weight().to_dense();
      run.algorithm->update(*run.optimizer);
      run.optimizer->zero_grad();
      const BitMask found = MaskSet(run.weight().pattern()).bits();
      if (step % 2 != 0) {
        ASSERT_EQ(found, u.mask);
        continue;
      }
      const BitMask kept = dropped(by, u);
      ASSERT_LT(kept.count(), u.mask.count());
      EXPECT_EQ(count_common(kept, found), kept.count()) << s.shape.description();
      EXPECT_TRUE(by.fits(found)) << s.shape.description();
      if (!s.shape.is_transposable()) {
        EXPECT_EQ(found.count(), u.mask.count());
      }
    }
  }
}

TEST(ConvolutionRules, KeepAliveLeavesNoOutputAndNoInputChannelBehind) {
  const std::string entry =
      "{algorithm: set, param_filter: conv.weight, fan_in: 1.25, update: {freq: 1}, "
      "drop_fraction: 0.8, init_method: balanced, keep_alive: ";
  const auto dead = [&](const char* keep_alive) {
    ConvolutionModel run(entry + keep_alive + "}", "csr");
    int64_t count = 0;
    for (int step = 0; step < 10; ++step) {
      run.step();
      const MaskUpdate& update = run.algorithm->last_update().at(0);
      count += update.dead_rows + update.dead_columns;
    }
    return count;
  };
  EXPECT_EQ(dead("true"), 0);
  EXPECT_GT(dead("false"), 0);
}

}  // namespace
}  // namespace lacuna::convolution_rules_test
