#include "lacuna/framework/quantize/learned_scales.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"
#include "random_values.h"
#include "throws.h"

namespace lacuna::learned_scales_test {
namespace {

constexpr int64_t kRows = 7, kColumns = 40;

// Some of a row's weights are clipped, and the last row is all zero.
std::vector<float> found_scales() {
  std::vector<float> scales;
  for (int64_t r = 0; r < kRows; ++r) scales.push_back(0.004f + 0.0005f * static_cast<float>(r));
  scales.back() = 0.0f;
  return scales;
}

// Every weight, or those of a mask.
ParameterPtr weight_in(const Layout& layout) {
  auto weight = std::make_shared<Parameter>(Shape{kRows, kColumns}, Initializer::constant(0.0));
  weight->set_name("fc.weight");
  Tensor values = random_tensor(weight->shape(), "w");
  BitMask mask = BitMask::zeros(weight->numel());
  for (int64_t i = 0; i < weight->numel(); ++i) {
    if (i < (kRows - 1) * kColumns && i % 3 != 1) {
      mask.set(i);
    } else {
      values.mutable_data()[i] = 0.0f;
    }
  }
  if (&layout != &dense_layout()) {
    weight->values();
    weight->set_pattern(Pattern::make(layout, weight->shape(), mask));
  }
  weight->assign(values);
  return weight;
}

void give_gradient(Parameter& weight) {
  const Tensor dense = random_tensor(weight.shape(), "g");
  if (weight.pattern()->is_dense()) return weight.add_gradient(dense);
  Tensor elements = Tensor::empty(Shape{weight.pattern()->nnz()});
  size_t at = 0;
  const Positions positions = weight.pattern()->positions();
  for (int64_t r = 0; r < kRows; ++r) {
    for (const uint32_t column : positions.row(r)) {
      elements.mutable_storage()[at++] = dense.data()[r * kColumns + static_cast<int64_t>(column)];
    }
  }
  weight.add_gradient(weight.expanded(elements));
}

std::unique_ptr<Optimizer> sgd(std::vector<ParameterPtr> scales) {
  return std::make_unique<Sgd>(std::move(scales), SgdOptions{.lr = 1.0});
}

// Scales after one step of sgd with a rate of 1.
std::vector<float> after_a_step(Parameter& weight, LearnedScales& learned) {
  learned.begin(0, found_scales(), std::nullopt);
  give_gradient(weight);
  learned.step();
  return learned.scales(0);
}

// Of the surrogate whose rounding errors, in steps, stay: by finite differences.
TEST(LearnedScales, ChangeByTheGradientOfTheSurrogate) {
  const ParameterPtr weight = weight_in(dense_layout());
  const std::vector<float> w = weight->values().to_vector(),
                           g = random_tensor(weight->shape(), "g").to_vector();
  LearnedScales learned({weight}, false, sgd);
  const std::vector<float> now = after_a_step(*weight, learned), found = found_scales();
  int64_t clipped = 0;
  for (size_t r = 0; r + 1 < found.size(); ++r) {
    const auto scale = static_cast<double>(found[r]);
    const auto loss = [&](double s) {
      double sum = 0.0;
      for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
        const double quotient = static_cast<double>(w[i]) / scale, step = std::nearbyint(quotient);
        const double value = std::abs(step) > kGridSteps
                                 ? std::copysign(kGridSteps, quotient) * s
                                 : s * (static_cast<double>(w[i]) / s + step - quotient);
        sum += static_cast<double>(g[i]) * value;
      }
      return sum;
    };
    int64_t nonzeros = 0;
    for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
      const bool is_clipped = std::abs(std::nearbyint(w[i] / found[r])) > kGridSteps;
      nonzeros += w[i] != 0.0f ? 1 : 0;
      clipped += is_clipped ? 1 : 0;
      // Straight through, but where it is clipped.
      EXPECT_EQ(std::as_const(*weight).gradient().storage()[i], is_clipped ? 0.0f : g[i]) << i;
    }
    const double slope = (loss(scale + 1e-8) - loss(scale - 1e-8)) / 2e-8;
    const double expected = scale - slope / std::sqrt(static_cast<double>(nonzeros * kGridSteps));
    const double least = scale * static_cast<double>(LearnedScales::kLeastFactor);
    EXPECT_NEAR(now[r], std::max(expected, least), 1e-4 * std::max(expected, least)) << r;
  }
  EXPECT_GT(clipped, 20);
  EXPECT_EQ(now.back(), 0.0f);
}

TEST(LearnedScales, AreTheSameInEveryLayout) {
  std::vector<float> first;
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    const ParameterPtr weight = weight_in(*layout);
    LearnedScales learned({weight}, false, sgd);
    const std::vector<float> now = after_a_step(*weight, learned);
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << layout->name();
  }
}

// An optimizer that divides a gradient by its size changes each scale by the same share.
TEST(LearnedScales, AdamChangesThemByShares) {
  const ParameterPtr weight = weight_in(csr_layout());
  LearnedScales learned({weight}, false, [](std::vector<ParameterPtr> scales) {
    return std::make_unique<Adam>(std::move(scales), AdamOptions{.lr = 0.01});
  });
  const std::vector<float> now = after_a_step(*weight, learned), found = found_scales();
  for (size_t r = 0; r + 1 < found.size(); ++r) {
    EXPECT_NEAR(std::abs(now[r] / found[r] - 1.0f), 0.01f, 1e-4f);
  }
}

TEST(LearnedScales, GoOnFromTheirState) {
  const auto make = [](std::vector<ParameterPtr> scales) {
    return std::make_unique<Sgd>(std::move(scales), SgdOptions{.lr = 0.1, .momentum = 0.9});
  };
  const ParameterPtr weight = weight_in(csr_layout());
  LearnedScales whole({weight}, false, make), second({weight}, false, make);
  after_a_step(*weight, whole);
  second.load_state_dict(whole.state_dict(), {std::nullopt});
  EXPECT_EQ(second.scales(0), whole.scales(0));
  for (LearnedScales* each : {&whole, &second}) {
    weight->zero_gradient();
    give_gradient(*weight);
    each->step();
  }
  EXPECT_EQ(second.scales(0), whole.scales(0));
}

TEST(LearnedScales, RefuseStatesThatDoNotFit) {
  const ParameterPtr weight = weight_in(csr_layout());
  LearnedScales learned({weight}, true, sgd);
  learned.begin(0, found_scales(), Int8Grid{.scale = 0.01f, .zero = 3});
  const StateDict good = learned.state_dict();
  const auto refuses = [&](const std::string& name, const StateDict::Value& value,
                           const std::string& words) {
    StateDict bad = good;
    bad.set(name, value);
    expect_throws<CheckpointError>(
        [&] { learned.load_state_dict(bad, {Int8Grid{.scale = 0.01f, .zero = 3}}); }, words);
  };
  refuses("fc.weight/factors", Tensor::full(Shape{3}, 1.0f), "are not 7 factors");
  refuses("fc.weight/factors", Tensor::full(Shape{kRows}, NAN), "are not 7 factors");
  refuses("fc.weight/input_factor", Tensor::full(Shape{1}, 0.0f), "are not 1 factors");
  refuses("fc.weight/found_scales", Tensor::full(Shape{kRows}, -1.0f), "a scale for each output");
  refuses("fc.weight/found_input_scale", 0.0, "found_input_scale");
  expect_throws<CheckpointError>([&] { learned.load_state_dict(StateDict(), {std::nullopt}); },
                                 "it was trained with quantize.scales: observed");
}

}  // namespace
}  // namespace lacuna::learned_scales_test
