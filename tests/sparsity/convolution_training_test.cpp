// A convolution's weight in training: the same numbers in csr as in masked, resumes, plans,
// sparsifiers, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/framework/param/saved_parameter.hpp"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/semi_sparse.h"
#include "lacuna/sparsity/sparsify.h"
#include "lacuna/sparsity/static.h"
#include "sparsity/convolution_model.h"
#include "sparsity/masks/by_hand.h"
#include "state_differences.h"
#include "throws.h"

namespace lacuna::convolution_training_test {
namespace {

const std::vector<std::string>& entries() {
  static const std::vector<std::string> all = {
      "{algorithm: static, sparsity: 0.8, distribution: erk}",
      "{algorithm: static, sparsity: 0.75, init_method: checkerboard, balance_in_groups: 4}",
      "{algorithm: static, pattern: {type: nm, n: 2, m: 4}, param_filter: conv.weight}",
      "{algorithm: set, sparsity: 0.75, update: {freq: 2}, balance_in_groups: 2}",
      "{algorithm: set, sparsity: 0.75, update: {freq: 2}, balance_out_groups: 2}",
      "{algorithm: rigl, sparsity: 0.8, update: {freq: 2}, distribution: er}",
      "{algorithm: rigl, pattern: {type: nm, n: 1, m: 4, group: 2}, update: {freq: 2}, "
      "param_filter: conv.weight}",
      "{algorithm: gmp, sparsity: {type: polynomial, init: 0, final: 0.5, start: 0, end: 8}, "
      "update: {freq: 2}, pattern: {type: nm, n: 2, m: 4}, param_filter: conv.weight}",
      "{algorithm: saliency, sparsity: {type: linear, init: 0.3, slope: 0.05}, update: {freq: 3}}",
      "{algorithm: snfs, sparsity: 0.8, update: {freq: 3}}",
      "{algorithm: snip, sparsity: 0.7}",
      "{algorithm: ste, sparsity: 0.8, update: {freq: 3}}",
      "{algorithm: acdc, sparsity: 0.8, update: {freq: 3}}",
      "{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, decay: 0.01, "
      "param_filter: conv.weight}",
      "{algorithm: semi_sparse, pattern: {type: block, rows: 4, cols: 2}, sparsity: 0.5, every: 2, "
      "param_filter: conv.weight}",
      "[{algorithm: rigl, sparsity: 0.5, pattern: {type: block, rows: 2, cols: 2}, update: {freq: "
      "2}, param_filter: 'conv*'}, {algorithm: static, sparsity: 0.6}]",
      "{phases: [{until: 3, algorithm: set, sparsity: 0.6, update: {freq: 2}}, {until: 5, "
      "algorithm: dense}, {algorithm: static, pattern: {type: nm, n: 2, m: 4}, "
      "param_filter: conv.weight}]}",
  };
  return all;
}

StateDict state_of(const ConvolutionModel& run) {
  StateDict all;
  all.merge("model", run.model.state_dict());
  all.merge("optimizer", run.optimizer->state_dict());
  all.merge("algorithm", run.algorithm->state_dict());
  return all;
}

class ConvolutionTraining : public testing::TestWithParam<std::string> {};

// Its product runs on the dense values in either layout, so that not even roundings differ; the
// linear layer stays masked.
TEST_P(ConvolutionTraining, IsTheSameInCsrAsInMasked) {
  ConvolutionModel masked(GetParam(), "masked"), csr(GetParam(), "masked");
  Parameter& weight = csr.weight();
  for (int step = 1; step <= 9; ++step) {
    masked.step();
    // Whatever layout an algorithm gives it.
    if (!weight.pattern()->is_dense()) {
      weight.set_pattern(Pattern::make(csr_layout(), weight.shape(), weight.pattern()->positions(),
                                       weight.pattern()->lifetime()));
    }
    csr.step();
    ASSERT_EQ(weight.mask(), masked.weight().mask()) << step;
    ASSERT_EQ(weight.to_dense().to_vector(), masked.weight().to_dense().to_vector()) << step;
    const auto found = csr.algorithm->last_update(), expected = masked.algorithm->last_update();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].dropped, expected[i].dropped);
      EXPECT_EQ(found[i].grown, expected[i].grown);
      EXPECT_EQ(found[i].ever_active, expected[i].ever_active);
      EXPECT_EQ(found[i].dead_rows, expected[i].dead_rows);
      EXPECT_EQ(found[i].dead_columns, expected[i].dead_columns);
    }
  }
}

TEST_P(ConvolutionTraining, GoesOnFromACheckpointBitForBit) {
  for (const char* layout : {"masked", "csr"}) {
    std::vector<StateDict> states;
    ConvolutionModel whole(GetParam(), layout);
    for (int step = 0; step <= 8; ++step) {
      if (step > 0) whole.step();
      states.push_back(state_of(whole));
    }
    for (const size_t from : {0u, 1u, 3u, 4u, 6u}) {
      ConvolutionModel resumed(GetParam(), layout, 99);
      resumed.model.load_state_dict(states[from].below("model"));
      resumed.algorithm->load_state_dict(states[from].below("algorithm"));
      resumed.optimizer->load_state_dict(states[from].below("optimizer"));
      resumed.steps = 2 * static_cast<int64_t>(from);
      for (size_t step = from + 1; step <= 8; ++step) {
        resumed.step();
        ASSERT_THAT(differences(state_of(resumed), states[step]), testing::IsEmpty())
            << layout << ": loaded after step " << from << ", differs after step " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionTraining, testing::ValuesIn(entries()));

TEST(ConvolutionLayouts, CsrHoldsEveryPatternOfAConvolution) {
  for (const char* pattern :
       {"{type: nm, n: 2, m: 4}", "{type: nm, n: 2, m: 4, transposable: true}",
        "{type: nm, n: 1, m: 4, group: 4}", "{type: block, rows: 4, cols: 4}"}) {
    const std::string entry = std::string("{algorithm: rigl, update: {freq: 2}, pattern: ") +
                              pattern + (pattern[7] == 'b' ? ", sparsity: 0.5" : "") +
                              ", param_filter: conv.weight}";
    ConvolutionModel run(entry, "csr");
    run.step();
    run.step();
    EXPECT_EQ(run.weight().pattern()->layout().name(), "csr") << pattern;
    const PlannedParameter planned = run.algorithm->plan(4).at(0);
    EXPECT_EQ(planned.layout, "csr") << pattern;
    EXPECT_EQ(planned.final_layout, "csr") << pattern;
    EXPECT_EQ(planned.compressed, "csr") << pattern;
    EXPECT_EQ(planned.final_nnz, run.weight().pattern()->nnz()) << pattern;
    EXPECT_TRUE(planned.pattern.is_structured()) << pattern;
    EXPECT_EQ(run.algorithm->pattern(run.weight()), planned.pattern) << pattern;
    EXPECT_EQ(run.algorithm->pattern(*run.model.parameter("fc.weight")), PatternShape());
  }
}

TEST(ConvolutionLayouts, OfPatternsAreForLinearLayers) {
  const auto apply = [](const std::string& entry, const std::string& layout) {
    return [entry, layout] { ConvolutionModel run(entry, layout); };
  };
  expect_throws<ConfigError>(
      apply("{algorithm: static, pattern: {type: nm, n: 2, m: 4}, param_filter: conv.weight}",
            "nm"),
      "layout 'nm 2:4' can only store weights of linear layers, and parameter 'conv.weight' of "
      "shape [8, 8, 3, 2] belongs to a convolution; give it an entry of its own with layout: csr, "
      "auto or masked");
  expect_throws<ConfigError>(
      apply("{algorithm: static, sparsity: 0.5, pattern: {type: block, rows: "
            "4, cols: 4}, param_filter: conv.weight}",
            "block"),
      "layout 'block 4x4' can only store weights of linear layers");
}

TEST(ConvolutionLayouts, WhatDoesNotDivideIsNamedWithItsShape) {
  Sequential model;
  model.add<TapProduct>("stem", {.weight = Shape{6, 3, 3, 3}});
  const auto apply = [&](const PatternShape& pattern) {
    return [&model, pattern] {
      Static algorithm({.sparsity = pattern.is_nm() ? 0.0 : 0.5, .pattern = pattern});
      model.apply(algorithm);
    };
  };
  expect_throws<ShapeError>(apply(PatternShape::nm(2, 4)),
                            "parameter 'stem.weight' of shape [6, 3, 3, 3] cannot have the pattern "
                            "2:4: its number of input channels 3 is not divisible by 4");
  expect_throws<ShapeError>(apply(PatternShape::block(4, 3)),
                            "its output dimension 6 is not divisible by 4");
  Static grouped({.sparsity = 0.5, .groups = ScoreGroups::columns(9)});
  expect_throws<ShapeError>([&] { model.apply(grouped); },
                            "has 3 input channels, which balance_in_groups = 9 does not divide");
}

// Of other layouts that a file may name, none has products of convolutions.
TEST(ConvolutionLayouts, OfACheckpointAreDenseMaskedOrCsr) {
  const std::string entry =
      "{algorithm: static, pattern: {type: nm, n: 2, m: 4}, param_filter: conv.weight}";
  ConvolutionModel csr(entry, "csr");
  StateDict state = csr.model.state_dict();
  state.set("conv.weight/layout", std::string("nm 2:4"));
  expect_throws<CheckpointError>(
      [&] { csr.model.load_state_dict(state); },
      "'conv.weight', a convolution's weight, is in layout 'nm 2:4' in the checkpoint; that layout "
      "is only for weights of linear layers");
}

TEST(ConvolutionSparsifiers, KeepWhatTheirRulesSay) {
  register_builtins();
  const auto mask_of = [](const std::string& sparsifier, const char* layout) {
    ConvolutionModel run;
    const std::string list =
        "[{tensor: conv.weight, sparsifier: " + sparsifier + ", layout: " + layout + "}]";
    const auto algorithm = sparsify_weights(sparsify_from_config(parse_yaml(list, "c.yaml"), 0));
    run.apply(*algorithm);
    for (int i = 0; i < 3; ++i) run.step();
    EXPECT_EQ(run.weight().pattern()->layout().name(), layout);
    const Tensor& master = run.weight().slots().at("shadow").values;
    return std::pair(MaskSet(run.weight().pattern()).bits(), master.clone());
  };
  for (const char* layout : {"masked", "csr"}) {
    const auto expect = [&](const std::string& sparsifier, const PatternShape& pattern,
                            double fraction) {
      const auto [mask, master] = mask_of(sparsifier, layout);
      by_hand::Scores scores;
      for (const float value : master.storage()) scores.push_back(std::abs(value));
      const by_hand::Weight by(pattern, master.shape());
      const int64_t count = target_nnz(static_cast<float>(fraction), by.unit_count());
      EXPECT_EQ(mask, by.grow_maximum(BitMask::zeros(mask.size()), scores, count)) << sparsifier;
    };
    expect("{type: nm, n: 2, m: 4}", PatternShape::nm(2, 4), 0.5);
    expect("{type: nm, n: 1, m: 4, group: 2}", PatternShape::nm(1, 4, 2), 0.75);
    expect("{type: nm, n: 2, m: 4, transposable: true}", PatternShape::transposable_2_4(), 0.5);
    expect("{type: block_fraction, rows: 2, cols: 4, fraction: 0.6}", PatternShape::block(2, 4),
           0.6);
    expect("{type: scalar_fraction, fraction: 0.9}", PatternShape::block(1, 1), 0.9);
    expect("keep_all", PatternShape::block(1, 1), 0.0);
    const auto [mask, master] = mask_of("{type: scalar_threshold, threshold: 0.2}", layout);
    for (int64_t i = 0; i < mask.size(); ++i) {
      ASSERT_EQ(mask.test(i), std::abs(master.data()[i]) >= 0.2f);
    }
    const int64_t drawn = mask_of("{type: random_fraction, fraction: 0.5}", layout).first.count();
    EXPECT_NEAR(static_cast<double>(drawn), 192, 60);
  }
}

TEST(ConvolutionSparsifiers, RefuseChannelsThatTheyDoNotDivide) {
  register_builtins();
  const auto apply = [](const char* sparsifier) {
    return [sparsifier] {
      ConvolutionModel run;
      const std::string list =
          std::string("[{tensor: conv.weight, sparsifier: ") + sparsifier + "}]";
      const auto algorithm = sparsify_weights(sparsify_from_config(parse_yaml(list, "c.yaml"), 0));
      run.apply(*algorithm);
    };
  };
  // 8 input channels of 6 taps: 48 columns, which 3 and 16 divide.
  expect_throws<ShapeError>(apply("{type: nm, n: 1, m: 3}"),
                            "its number of input channels 8 is not divisible by 3");
  expect_throws<ShapeError>(apply("{type: block_fraction, rows: 1, cols: 16, fraction: 0.5}"),
                            "its number of input channels 8 is not divisible by 16");
}

/// A user's algorithm: keeps one tap of each channel, another at each update.
class OneTap final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "one_tap"; }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet&, float) override {
    const int64_t taps = matrix_taps(weight.shape());
    BitMask next = BitMask::zeros(weight.numel());
    for (int64_t i = step() % taps; i < next.size(); i += taps) next.set(i);
    return next;
  }
};

TEST(ConvolutionUsers, WriteAlgorithmsOfTheirOwn) {
  for (const char* layout : {"masked", "csr"}) {
    ConvolutionModel run;
    OneTap algorithm({.sparsity = 5.0 / 6.0,
                      .param_filter = "conv.weight",
                      .layout = layout,
                      .update = UpdateSchedule::every(1)});
    run.apply(algorithm);
    for (int64_t step = 1; step <= 4; ++step) {
      run.step();
      EXPECT_EQ(run.weight().pattern()->nnz(), 64);
      MaskSet(run.weight().pattern()).bits().for_each([&](int64_t i) {
        ASSERT_EQ(i % 6, step % 6);
      });
      EXPECT_EQ(algorithm.last_update().at(0).dead_columns, 0);
    }
  }
}

TEST(ConvolutionUsers, SwapLinearLayersAlone) {
  ConvolutionModel run;
  expect_throws<ConfigError>(
      [&] {
        swap_linear_with_semi_sparse(run.model, {{"conv", {.pattern = PatternShape::nm(2, 4)}}});
      },
      "'conv' matches no linear layer's weight");
}

}  // namespace
}  // namespace lacuna::convolution_training_test
