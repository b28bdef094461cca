// Weights that grow while others are trained: their ages in Adam.
#include "lacuna/optimizers/regrown.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::regrown_test {
namespace {

constexpr RegrownWeights kOwn{.age = RegrownWeights::Age::Own};

BitMask bits(int64_t size, uint64_t which) {
  const CounterRng rng(which, "mask");
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < size; ++i) bytes.push_back(rng.bits(static_cast<uint64_t>(i)) % 3 == 0);
  return BitMask::from_bytes(bytes);
}

// A matrix [8, 16] whose mask is the first of a row of masks.
ParameterPtr make_matrix(const Layout& layout) {
  const Shape shape{8, 16};
  auto parameter = std::make_shared<Parameter>(shape, Initializer::constant(1.0));
  parameter->set_name("w");
  parameter->set_pattern(Pattern::make(layout, shape, bits(shape.numel(), 0)));
  return parameter;
}

// Two steps by gradients that depend on the step, then the next mask.
void train(Optimizer& optimizer, const Layout& layout, int64_t turn) {
  Parameter& parameter = *optimizer.parameters()[0];
  for (int64_t step = 2 * turn; step < 2 * turn + 2; ++step) {
    const CounterRng rng(1, "gradient", static_cast<uint64_t>(step));
    Tensor gradient = Tensor::empty(parameter.shape());
    for (int64_t i = 0; i < gradient.numel(); ++i) {
      gradient.mutable_data()[i] = static_cast<float>(rng.normal(static_cast<uint64_t>(i)));
    }
    parameter.zero_gradient();
    parameter.accumulate(gradient);
    optimizer.step();
    parameter.prune();
  }
  parameter.set_pattern(Pattern::make(layout, parameter.shape(),
                                      bits(parameter.numel(), static_cast<uint64_t>(turn + 1))));
}

// The largest |step| of two weights under a constant gradient, the second grown after `late` steps,
// in units of the learning rate; values are put back to zero before each step.
std::array<double, 2> largest_steps(const AdamOptions& options, int late, int steps) {
  const ParameterPtr w = make_parameter("w", {0.0f, 0.0f});
  const auto masked = [](std::vector<uint8_t> bytes) {
    return Pattern::masked({2}, BitMask::from_bytes(bytes));
  };
  w->set_pattern(masked({1, 0}));
  Adam optimizer({w}, options);
  std::array<double, 2> largest{};
  for (int step = 0; step < steps; ++step) {
    if (step == late) w->set_pattern(masked({1, 1}));
    for (float& value : w->mutable_values().mutable_storage()) value = 0.0f;
    set_gradient(w, {1.0f, 1.0f});
    optimizer.step();
    w->prune();
    for (size_t i = 0; i < 2; ++i) {
      largest[i] =
          std::max(largest[i], std::abs(double{w->values().storage()[i]}) / optimizer.lr());
    }
  }
  return largest;
}

TEST(Regrown, NoStepOfAGrownWeightExceedsTheLearningRate) {
  for (const std::array<double, 2> betas : {std::array{0.9, 0.999}, {0.9, 0.95}, {0.0, 0.9999}}) {
    for (const int late : {1, 50, 4000}) {
      const AdamOptions options{.lr = 1e-3, .betas = betas, .regrown = kOwn};
      const auto largest = largest_steps(options, late, 22000);  // past the largest age of 0.999
      EXPECT_LE(largest[0], 1.01) << betas[1];
      EXPECT_LE(largest[1], 1.01) << betas[1] << ", grown after " << late;
      EXPECT_GE(largest[1], 0.99);
    }
  }
  // The largest age that is kept, where the correction at 0.9999 is not 1 yet.
  EXPECT_LE(largest_steps({.lr = 1e-3, .betas = {0.9, 0.9999}, .regrown = kOwn}, 80000, 147000)[1],
            1.01);
  const double shared = largest_steps({.lr = 1e-3}, 20000, 21000)[1];
  EXPECT_GT(shared, 6.0);  // (1 − β₁ᵗ)/√(1 − β₂ᵗ) at its largest
  EXPECT_LT(shared, 7.0);
}

TEST(Regrown, WarmupRaisesTheStepOfGrownWeightsAlone) {
  for (const auto age : {RegrownWeights::Age::Own, RegrownWeights::Age::Shared}) {
    const ParameterPtr w = make_parameter("w", {0.0f, 0.0f});
    const ParameterPtr plain = make_parameter("plain", {0.0f, 0.0f});
    const auto mask = [](const ParameterPtr& p, std::vector<uint8_t> bytes) {
      p->set_pattern(Pattern::masked({2}, BitMask::from_bytes(bytes)));
    };
    Adam optimizer({w}, {.lr = 0.5, .regrown = {.age = age, .warmup = 4}});
    Adam without({plain}, {.lr = 0.5, .regrown = {.age = age}});
    mask(w, {1, 0});
    mask(plain, {1, 0});
    for (int step = 0; step < 12; ++step) {
      if (step == 3) {
        mask(w, {1, 1});
        mask(plain, {1, 1});
      }
      for (const ParameterPtr& p : {w, plain}) {
        for (float& value : p->mutable_values().mutable_storage()) value = 0.0f;
        set_gradient(p, {1.0f, 1.0f});
      }
      optimizer.step();
      without.step();
      w->prune();
      plain->prune();
      const auto own = w->values().storage(), other = plain->values().storage();
      EXPECT_EQ(own[0], other[0]) << step;
      const float ramp = std::min(1.0f, static_cast<float>(step - 2) / 4.0f);
      EXPECT_NEAR(own[1], step < 3 ? 0.0f : ramp * other[1], 1e-6f) << step;
    }
  }
}

TEST(Regrown, WithoutGrowthAgesChangeNoBit) {
  const ParameterPtr own = make_matrix(csr_layout()), shared = make_matrix(csr_layout());
  Adam with({own}, {.lr = 0.1, .regrown = kOwn}), without({shared}, {.lr = 0.1});
  for (int step = 0; step < 400; ++step) {  // past where the first correction is 1
    for (const ParameterPtr& p : {own, shared}) {
      p->zero_gradient();
      p->accumulate(Tensor::full(p->shape(), std::sin(static_cast<float>(step))));
    }
    with.step();
    without.step();
    ASSERT_EQ(own->values().to_vector(), shared->values().to_vector()) << step;
  }
}

TEST(Regrown, AgesMoveWithThePatternInEveryLayout) {
  std::vector<std::vector<float>> ends;
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    for (const RegrownWeights& regrown : {kOwn, RegrownWeights{}}) {
      Adam optimizer({make_matrix(*layout)}, {.lr = 0.1, .regrown = regrown});
      for (int64_t turn = 0; turn < 6; ++turn) train(optimizer, *layout, turn);
      ends.push_back(optimizer.parameters()[0]->to_dense().to_vector());
    }
  }
  EXPECT_EQ(ends[0], ends[2]);  // own
  EXPECT_EQ(ends[1], ends[3]);  // shared
  EXPECT_NE(ends[0], ends[1]);
  // Between layouts, in the middle.
  Adam optimizer({make_matrix(csr_layout())}, {.lr = 0.1, .regrown = kOwn});
  for (int64_t turn = 0; turn < 6; ++turn) {
    train(optimizer, turn % 2 == 0 ? masked_layout() : csr_layout(), turn);
  }
  EXPECT_EQ(optimizer.parameters()[0]->to_dense().to_vector(), ends[0]);
}

// Of what `saved` holds, loaded into a new optimizer, the values after three more turns.
std::vector<float> resumed(const StateDict& saved, const Parameter& from, const Layout& layout,
                           const RegrownWeights& regrown) {
  const ParameterPtr parameter = make_matrix(layout);
  parameter->set_pattern(Pattern::make(layout, from.shape(), from.pattern()->positions()));
  parameter->assign(from.to_dense());
  Adam optimizer({parameter}, {.lr = 0.1, .regrown = regrown});
  optimizer.load_state_dict(saved);
  for (int64_t turn = 3; turn < 6; ++turn) train(optimizer, layout, turn);
  return parameter->to_dense().to_vector();
}

TEST(Regrown, ASavedStateGoesOnBitForBitInEveryLayout) {
  for (const Layout* from : {&masked_layout(), &csr_layout()}) {
    Adam optimizer({make_matrix(*from)}, {.lr = 0.1, .regrown = kOwn});
    for (int64_t turn = 0; turn < 3; ++turn) train(optimizer, *from, turn);
    const StateDict saved = optimizer.state_dict();
    const ParameterPtr at_save = make_matrix(*from);
    at_save->set_pattern(optimizer.parameters()[0]->pattern());
    at_save->assign(optimizer.parameters()[0]->to_dense());
    for (int64_t turn = 3; turn < 6; ++turn) train(optimizer, *from, turn);
    for (const Layout* to : {&masked_layout(), &csr_layout()}) {
      EXPECT_EQ(resumed(saved, *at_save, *to, kOwn),
                optimizer.parameters()[0]->to_dense().to_vector())
          << from->name() << " " << to->name();
    }
  }
}

TEST(Regrown, AStateWithoutAgesLoadsAndOneWithThemLoadsWhereNoneAreKept) {
  Adam shared({make_matrix(csr_layout())}, {.lr = 0.1});
  Adam own({make_matrix(csr_layout())}, {.lr = 0.1, .regrown = kOwn});
  for (int64_t turn = 0; turn < 3; ++turn) {
    train(shared, csr_layout(), turn);
    train(own, csr_layout(), turn);
  }
  EXPECT_FALSE(shared.state_dict().contains("w/age"));
  EXPECT_TRUE(own.state_dict().contains("w/age"));
  const Parameter& of_shared = *shared.parameters()[0];
  const Parameter& of_own = *own.parameters()[0];
  const auto went_on = resumed(shared.state_dict(), of_shared, csr_layout(), RegrownWeights{});
  EXPECT_NE(resumed(shared.state_dict(), of_shared, csr_layout(), kOwn), went_on);
  EXPECT_NE(resumed(own.state_dict(), of_own, csr_layout(), RegrownWeights{}),
            resumed(own.state_dict(), of_own, csr_layout(), kOwn));
}

TEST(Regrown, SavedAgesThatAreNoneAreRefusedAndNothingChanges) {
  Adam optimizer({make_matrix(csr_layout())}, {.lr = 0.1, .regrown = kOwn});
  train(optimizer, csr_layout(), 0);
  const StateDict good = optimizer.state_dict();
  const Shape shape = good.get<Tensor>("w/age").shape();
  for (const float value : {-1.0f, 0.5f, 65536.0f, std::nanf("")}) {
    StateDict bad = good;
    bad.set("w/age", Tensor::full(shape, value));
    bad.set("step", int64_t{77});
    expect_throws<CheckpointError>([&] { optimizer.load_state_dict(bad); },
                                   "'w/age' has values that are not whole numbers from 0 to 65535");
  }
  StateDict bad = good;
  bad.set("w/age", Tensor::zeros({3}));
  expect_throws<CheckpointError>([&] { optimizer.load_state_dict(bad); }, "'w/age' has shape [3]");
  EXPECT_EQ(optimizer.steps(), 2);
}

TEST(Regrown, AgesOfStatesThatAreKeptDenseAreSavedWhole) {
  const ParameterPtr w = make_matrix(csr_layout()), other = make_matrix(csr_layout());
  const PatternPtr sparse = w->pattern();
  const auto dense_step = [&](Adam& optimizer) {  // as a master weight is trained
    const ParameterPtr& p = optimizer.parameters()[0];
    p->replace(Pattern::dense(p->shape()), Tensor::full(p->shape(), 1.0f),
               Tensor::full(p->shape(), 0.5f));
    optimizer.step();
    for (auto& [name, slot] : p->slots()) slot.requires_dense = true;
    p->replace(sparse, Tensor::zeros(sparse->stored_shape()));
  };
  Adam optimizer({w}, {.lr = 0.1, .regrown = kOwn}),
      restored({other}, {.lr = 0.1, .regrown = kOwn});
  const auto ages_of = [](const Optimizer& of) {
    return of.state_dict().get<Tensor>("w/age").to_vector();
  };
  set_gradient(w, std::vector<float>(128, 1.0f));
  optimizer.step();
  dense_step(optimizer);
  dense_step(optimizer);
  std::vector<float> expected;  // new positions are a step younger
  for (const uint8_t bit : w->mask().values) expected.push_back(bit != 0 ? 3.0f : 2.0f);
  EXPECT_EQ(optimizer.state_dict().get<Tensor>("w/age").shape(), w->shape());
  EXPECT_EQ(ages_of(optimizer), expected);
  restored.load_state_dict(optimizer.state_dict());
  EXPECT_EQ(ages_of(restored), expected);
  dense_step(restored);
  for (float& age : expected) ++age;
  EXPECT_EQ(ages_of(restored), expected);
}

TEST(Regrown, TakesTwoBytesForEachNonzero) {
  const ParameterPtr w = make_matrix(csr_layout());
  const int64_t nnz = w->pattern()->nnz();
  EXPECT_EQ(Adam({w}, {}).state_bytes(*w), 8 * nnz);
  EXPECT_EQ(Adam({w}, {.regrown = kOwn}).state_bytes(*w), 10 * nnz);
  const ParameterPtr dense = make_parameter("dense", {0.0f, 0.0f});
  Adam optimizer({dense}, {.regrown = kOwn});
  EXPECT_EQ(optimizer.state_bytes(*dense), 16);
  set_gradient(dense, {1.0f, 1.0f});
  optimizer.step();
  EXPECT_FALSE(optimizer.state_dict().contains("dense/age"));
}

TEST(Regrown, AgesEndWhereBothCorrectionsAreOneInFloat32) {
  const auto size = [](std::array<double, 2> betas, RegrownWeights regrown) {
    return AgeTables(regrown, betas).size();
  };
  EXPECT_EQ(size({0.9, 0.999}, {}), 0);
  EXPECT_EQ(size({0.9, 0.999}, kOwn), 17321);
  EXPECT_EQ(size({0.9, 0.99}, kOwn), 1725);
  EXPECT_EQ(size({0.0, 0.0}, kOwn), 1);
  EXPECT_EQ(size({0.9, 0.9999}, kOwn), 65535);
  EXPECT_EQ(size({0.9, 0.999}, {.warmup = 100}), 100);
  EXPECT_EQ(size({0.9, 0.9}, {.age = RegrownWeights::Age::Own, .warmup = 1000}), 1000);
}

TEST(Regrown, IsReadFromAConfiguration) {
  const auto make = [](const std::string& regrown) {
    const Config config = parse_yaml("{type: adamw, regrown: " + regrown + "}", "run.yaml");
    const ParameterPtr w = make_matrix(csr_layout());
    const int64_t bytes = make_optimizer(config, {w})->state_bytes(*w);
    config.require_all_read();
    return bytes / w->pattern()->nnz();
  };
  EXPECT_EQ(make("own"), 10);
  EXPECT_EQ(make("shared"), 8);
  EXPECT_EQ(make("null"), 8);
  EXPECT_EQ(make("{age: own}"), 10);
  EXPECT_EQ(make("{age: own, warmup: 100}"), 10);
  EXPECT_EQ(make("{warmup: 100}"), 10);
  EXPECT_EQ(make("{warmup: 0}"), 8);
  expect_throws<ConfigError>([&] { make("old"); },
                             "run.yaml:1:24: regrown: expected 'shared' or 'own'");
  expect_throws<ConfigError>([&] { make("{age: none}"); },
                             "regrown.age: expected 'shared' or 'own'");
  expect_throws<ConfigError>([&] { make("{warmup: -1}"); },
                             "regrown.warmup: expected from 0 to 65535 updates, found -1");
  expect_throws<ConfigError>([&] { make("own, betas: [0.9, 0.99999]"); },
                             "with regrown.age own, expected numbers of at most 0.9999, found "
                             "0.99999");
}

}  // namespace
}  // namespace lacuna::regrown_test
