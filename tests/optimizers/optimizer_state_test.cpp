// Saving and restoring optimizers.
#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "lacuna/framework/core/random.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::optimizer_state_test {
namespace {

using testing::ElementsAre;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterPtr>)>;

const Schedule kDecay =
    Schedule::from_config(Config::map({{"type", "power"}, {"init", 0.1}, {"beta", 0.9}}));

std::vector<ParameterPtr> make_parameters() {
  return {make_parameter("fc1.weight", {1.0f, -2.0f, 3.0f}), make_parameter("fc1.bias", {0.5f})};
}

// One training step with gradients that depend on the step; every third leaves the bias out.
void train(Optimizer& optimizer, int64_t step) {
  optimizer.zero_grad();
  const CounterRng rng(1, "gradient", static_cast<uint64_t>(step));
  for (const ParameterPtr& parameter : optimizer.parameters()) {
    if (step % 3 == 2 && parameter->numel() == 1) continue;
    std::vector<float> gradient;
    for (int64_t i = 0; i < parameter->numel(); ++i) {
      gradient.push_back(static_cast<float>(rng.normal(static_cast<uint64_t>(i))));
    }
    set_gradient(parameter, gradient);
  }
  optimizer.step();
}

std::vector<std::string> names_in(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, value] : state.values()) names.push_back(name);
  return names;
}

class OptimizerState : public testing::TestWithParam<std::pair<const char*, Make>> {};

INSTANTIATE_TEST_SUITE_P(All, OptimizerState,
                         testing::Values(std::pair{"sgd", Make([](auto p) {
                                                     return std::make_unique<Sgd>(
                                                         std::move(p), SgdOptions{.lr = kDecay});
                                                   })},
                                         std::pair{"momentum", Make([](auto p) {
                                                     return std::make_unique<Sgd>(
                                                         std::move(p), SgdOptions{.lr = kDecay,
                                                                                  .momentum = 0.9,
                                                                                  .dampening = 0.5,
                                                                                  .warmup = 5});
                                                   })},
                                         std::pair{"adam", Make([](auto p) {
                                                     return std::make_unique<Adam>(
                                                         std::move(p), AdamOptions{.lr = kDecay});
                                                   })},
                                         std::pair{"adamw", Make([](auto p) {
                                                     return std::make_unique<AdamW>(
                                                         std::move(p), AdamWOptions{.lr = kDecay});
                                                   })}),
                         [](const auto& made) { return std::string(made.param.first); });

TEST_P(OptimizerState, RestoredAtAnyStepContinuesBitForBit) {
  const Make& make = GetParam().second;
  for (const int64_t stop : {0, 1, 3, 4}) {
    const auto straight = make(make_parameters());
    for (int64_t step = 0; step < 8; ++step) train(*straight, step);

    const auto before = make(make_parameters());
    for (int64_t step = 0; step < stop; ++step) train(*before, step);
    const StateDict saved = before->state_dict();
    std::vector<ParameterPtr> parameters = make_parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i]->assign(before->parameters()[i]->values());
    }
    // What the first one does later is no business of the saved state.
    train(*before, stop);

    const auto after = make(parameters);
    after->load_state_dict(saved);
    EXPECT_EQ(after->steps(), stop);
    for (int64_t step = stop; step < 8; ++step) train(*after, step);
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[i]->values().to_vector(),
                straight->parameters()[i]->values().to_vector());
    }
    EXPECT_EQ(names_in(after->state_dict()), names_in(straight->state_dict()));
  }
}

TEST_P(OptimizerState, AStateOfStepZeroRemovesWhatLaterStepsMade) {
  const Make& make = GetParam().second;
  const auto optimizer = make(make_parameters());
  const StateDict start = optimizer->state_dict();
  EXPECT_THAT(names_in(start), ElementsAre("fc1.bias/step", "fc1.weight/step", "step", "type"));
  train(*optimizer, 0);
  optimizer->load_state_dict(start);
  EXPECT_EQ(optimizer->steps(), 0);
  EXPECT_TRUE(optimizer->parameters()[0]->slots().empty());
}

TEST_P(OptimizerState, IsNotTakenFromAnEarlierOptimizer) {
  const Make& make = GetParam().second;
  const auto earlier = make(make_parameters());
  for (int64_t step = 0; step < 4; ++step) train(*earlier, step);
  const auto fresh = make(make_parameters());
  for (size_t i = 0; i < fresh->parameters().size(); ++i) {
    fresh->parameters()[i]->assign(earlier->parameters()[i]->values());
  }

  const auto later = make(earlier->parameters());
  EXPECT_FALSE(later->has_begun(*later->parameters()[0]));
  EXPECT_EQ(names_in(later->state_dict()), names_in(fresh->state_dict()));
  for (int64_t step = 4; step < 7; ++step) {
    train(*later, step);
    train(*fresh, step);
  }
  for (size_t i = 0; i < fresh->parameters().size(); ++i) {
    EXPECT_EQ(later->parameters()[i]->values().to_vector(),
              fresh->parameters()[i]->values().to_vector());
  }
}

TEST(OptimizerStateDict, HasZerosForDenseStatesOfAnEarlierOptimizer) {
  const std::vector<ParameterPtr> parameters = make_parameters();
  Adam earlier(parameters);
  train(earlier, 0);
  parameters[0]->slots().at("exp_avg").requires_dense = true;
  Adam later(parameters);
  const StateDict state = later.state_dict();
  EXPECT_THAT(state.get<Tensor>("fc1.weight/exp_avg").to_vector(), testing::Each(0.0f));
  later.load_state_dict(state);
  EXPECT_TRUE(parameters[0]->slots().at("exp_avg").requires_dense);
  EXPECT_THAT(parameters[0]->slots().at("exp_avg").values.to_vector(), testing::Each(0.0f));
}

TEST(OptimizerStateDict, HasArraysInTheShapeTheyAreStoredIn) {
  const auto parameter = std::make_shared<Parameter>(Shape{2, 3}, Initializer::constant(1.0));
  parameter->set_name("w");
  parameter->set_pattern(
      Pattern::masked({2, 3}, BitMask::from_bytes(std::vector<uint8_t>{1, 0, 1, 0, 1, 0})));
  Adam optimizer({parameter});
  parameter->accumulate(Tensor::full({2, 3}, 1.0f));
  optimizer.step();
  const StateDict state = optimizer.state_dict();
  EXPECT_THAT(names_in(state), ElementsAre("step", "type", "w/exp_avg", "w/exp_avg_sq", "w/step"));
  EXPECT_EQ(state.get<Tensor>("w/exp_avg").shape(), (Shape{2, 3}));
  EXPECT_EQ(state.get<std::string>("type"), "adam");
}

// A matrix with nonzeros in a layout, to be trained.
std::vector<ParameterPtr> make_sparse(const Layout& layout) {
  const Shape shape{7, 11};
  const auto parameter = std::make_shared<Parameter>(shape, Initializer::normal(1.0));
  parameter->set_name("w");
  std::vector<int64_t> kept;
  for (int64_t i = 3; i < shape.numel(); i += 1 + i % 4) kept.push_back(i);
  parameter->set_pattern(Pattern::make(layout, shape, Positions::of(shape, kept)));
  return {parameter};
}

TEST_P(OptimizerState, ContinuesInAnotherLayoutWithTheSameNumbers) {
  const Make& make = GetParam().second;
  for (const Layout* from : {&masked_layout(), &csr_layout()}) {
    const auto before = make(make_sparse(*from));
    for (int64_t step = 0; step < 4; ++step) train(*before, step);
    const StateDict saved = before->state_dict();
    const ParameterPtr& trained = before->parameters()[0];
    for (const auto& [name, slot] : trained->slots()) {
      EXPECT_EQ(saved.get<Tensor>("w/" + name).shape(),
                from == &csr_layout() ? Shape{trained->pattern()->nnz()} : trained->shape());
    }
    for (const Layout* to : {&masked_layout(), &csr_layout()}) {
      const auto after = make(make_sparse(*to));
      const ParameterPtr& parameter = after->parameters()[0];
      parameter->assign_elements(trained->compacted(trained->values()));
      after->load_state_dict(saved);
      for (int64_t step = 4; step < 8; ++step) train(*after, step);
      const auto straight = make(make_sparse(*from));
      for (int64_t step = 0; step < 8; ++step) train(*straight, step);
      EXPECT_EQ(parameter->to_dense().to_vector(),
                straight->parameters()[0]->to_dense().to_vector())
          << from->name() << " " << to->name();
    }
  }
}

TEST(OptimizerStateDict, AStateThatAnAlgorithmWantsDenseStaysSo) {
  const std::vector<ParameterPtr> parameters = make_sparse(csr_layout());
  Adam optimizer(parameters);
  train(optimizer, 0);
  Parameter& parameter = *parameters[0];
  Slot& slot = parameter.slots().at("exp_avg");
  slot.requires_dense = true;
  slot.values = Tensor::full(parameter.shape(), 2.0f);
  const std::vector<ParameterPtr> restored = make_sparse(csr_layout());
  Adam other(restored);
  other.load_state_dict(optimizer.state_dict());
  const Slot& back = restored[0]->slots().at("exp_avg");
  EXPECT_TRUE(back.requires_dense);
  EXPECT_EQ(back.values.shape(), parameter.shape());
  EXPECT_FALSE(restored[0]->slots().at("exp_avg_sq").requires_dense);
}

TEST(OptimizerStateDict, AStateOfAnotherNumberOfNonzerosDoesNotFit) {
  const std::vector<ParameterPtr> parameters = make_sparse(csr_layout());
  Adam optimizer(parameters);
  train(optimizer, 0);
  StateDict saved = optimizer.state_dict();
  saved.set("w/exp_avg", Tensor::zeros({3}));
  expect_throws<CheckpointError>([&] { optimizer.load_state_dict(saved); },
                                 "'w/exp_avg' has shape [3], expected [7, 11], or [" +
                                     std::to_string(parameters[0]->pattern()->nnz()) +
                                     "] for its nonzeros");
}

TEST(OptimizerStateDict, ARuleOfTheUsersOwnKeepsDenseStatesToo) {
  class Own final : public Optimizer {
   public:
    explicit Own(std::vector<ParameterPtr> p) : Optimizer(std::move(p), {.lr = 1.0}) {}
    std::string_view type() const override { return "own"; }

   protected:
    std::vector<StateSlot> state_slots() const override {
      return {{.name = "sum", .requires_dense = true}};
    }
    void update(const Update& u) override {
      for (size_t i = 0; i < u.values.size(); ++i) {
        u.states[0][i] += u.gradient[i];
        u.values[i] -= static_cast<float>(u.learning_rate) * u.states[0][i];
      }
    }
  };
  const auto parameters = make_parameters(), restored = make_parameters();
  Own optimizer(parameters), other(restored);
  train(optimizer, 0);
  other.load_state_dict(optimizer.state_dict());
  EXPECT_TRUE(restored[0]->slots().at("sum").requires_dense);
  EXPECT_EQ(restored[0]->slots().at("sum").values.to_vector(),
            parameters[0]->slots().at("sum").values.to_vector());
}

TEST(OptimizerStateDict, WhatDoesNotFitIsListedAndNothingChanges) {
  Adam optimizer(make_parameters());
  train(optimizer, 0);
  const StateDict good = optimizer.state_dict();

  StateDict bad;
  for (const auto& [name, value] : good.values()) {
    if (name != "fc1.bias/step" && name != "fc1.weight/exp_avg") bad.set(name, value);
  }
  bad.set("fc1.weight/exp_avg_sq", Tensor::zeros({4}));
  bad.set("fc2.weight/exp_avg", Tensor::zeros({1}));
  bad.set("step", int64_t{77});
  const auto load = [&] { optimizer.load_state_dict(bad); };
  expect_throws<CheckpointError>(load, "the saved optimizer state does not fit: ");
  expect_throws<CheckpointError>(load, "'fc1.bias/step' is missing or not a count");
  expect_throws<CheckpointError>(load, "'fc1.weight/exp_avg' is missing or not an array of floats");
  expect_throws<CheckpointError>(load, "'fc1.weight/exp_avg_sq' has shape [4], expected [3]");
  expect_throws<CheckpointError>(load, "'fc2.weight/exp_avg' is unexpected");
  EXPECT_EQ(optimizer.steps(), 1);
  optimizer.load_state_dict(good);
}

TEST(OptimizerStateDict, OfAnotherTypeOrWithoutOneIsRefused) {
  Adam adam(make_parameters());
  Sgd sgd(make_parameters(), {.lr = 0.1});
  expect_throws<CheckpointError>([&] { sgd.load_state_dict(adam.state_dict()); },
                                 "the saved optimizer is 'adam', this one is 'sgd'");
  expect_throws<CheckpointError>([&] { sgd.load_state_dict({}); }, "the saved state has no 'type'");
  StateDict negative = sgd.state_dict();
  negative.set("step", int64_t{-1});
  expect_throws<CheckpointError>([&] { sgd.load_state_dict(negative); },
                                 "'step' is missing or not a count");
  StateDict text = sgd.state_dict();
  text.set("step", std::string("1"));
  expect_throws<CheckpointError>([&] { sgd.load_state_dict(text); },
                                 "'step' is missing or not a count");
}

TEST(OptimizerStateDict, StatesOfMomentumDoNotFitPlainDescent) {
  Sgd momentum(make_parameters(), {.lr = 0.1, .momentum = 0.9});
  train(momentum, 0);
  Sgd plain(make_parameters(), {.lr = 0.1});
  expect_throws<CheckpointError>([&] { plain.load_state_dict(momentum.state_dict()); },
                                 "'fc1.bias/momentum_buffer' is unexpected");
}

}  // namespace
}  // namespace lacuna::optimizer_state_test
