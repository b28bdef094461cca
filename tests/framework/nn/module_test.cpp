#include "lacuna/framework/nn/module.h"

#include <gmock/gmock.h>

#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::module_test {
namespace {

using testing::ElementsAre;

// Adds a trained vector; counts its calls, which it keeps in its extra state.
class Shift final : public Module {
 public:
  struct Options {
    int64_t features = 2;
  };
  explicit Shift(const Options& options) {
    shift_ = register_parameter(
        "shift", std::make_shared<Parameter>(Shape{options.features}, Initializer::uniform(1.0)));
  }
  std::string_view type() const override { return "shift"; }

  int64_t calls = 0;
  uint64_t seed = 0;

 protected:
  Variable forward(const Variable& input) override {
    ++calls;
    return input;
  }
  StateDict extra_state() const override {
    StateDict state;
    state.set("calls", calls);
    return state;
  }
  void load_extra_state(const StateDict& state) override { calls = state.get<int64_t>("calls"); }
  void reset_random(uint64_t value) override { seed = value; }

 private:
  ParameterPtr shift_;
};

// block.a, block.b, out.
struct Model {
  Model() {
    auto block = std::make_unique<Sequential>();
    a = &block->add<Shift>("a");
    b = &block->add<Shift>("b", {.features = 3});
    root.add("block", std::move(block));
    root.add<Shift>("out");
  }
  Sequential root;
  Shift* a;
  Shift* b;
};

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> all;
  for (const ParameterPtr& parameter : module.parameters()) all.push_back(parameter->name());
  return all;
}

Tensor input() { return Tensor::zeros({1, 2}); }

TEST(Module, NamesArePathsFromTheRoot) {
  Model model;
  EXPECT_THAT(names(model.root), ElementsAre("block.a.shift", "block.b.shift", "out.shift"));
  std::vector<std::string> paths;
  for (Module* module : model.root.modules()) paths.push_back(module->path());
  EXPECT_THAT(paths, ElementsAre("", "block", "block.a", "block.b", "out"));
  EXPECT_EQ(model.root.parameter("block.b.shift")->shape(), (Shape{3}));
  EXPECT_EQ(model.root.children()[1].first, "out");
  expect_throws<StateError>([&] { model.root.parameter("block.b.shaft"); },
                            "the model has no parameter 'block.b.shaft'; did you mean");
}

TEST(Module, BadNamesAreErrors) {
  Sequential model;
  model.add<Shift>("a");
  expect_throws<StateError>([&] { model.add<Shift>("a"); },
                            "already has a child, parameter or buffer named 'a'");
  for (const char* name : {"", "a..b", "a/b"}) {
    expect_throws<StateError>(
        [&] { model.add<Shift>(name); },
        std::string("a module's name must be text (UTF-8) between single dots, "
                    "without '/', found '") +
            name + "'");
  }
}

TEST(Module, ANameMayHaveDots) {
  Sequential model;
  model.add<Shift>("attn.c_attn");
  auto inner = std::make_unique<Sequential>();
  inner->add<Shift>("0.fc");
  model.add("h", std::move(inner));
  EXPECT_THAT(names(model), ElementsAre("attn.c_attn.shift", "h.0.fc.shift"));
}

// Adds up what it is given.
class Total final : public Module {
 public:
  struct Options {};
  explicit Total(const Options& = {}) {}
  std::string_view type() const override { return "total"; }

 protected:
  Variable forward(const Variable& input) override { return input; }
  Variable forward_all(std::span<const Variable> inputs) override {
    Variable total = inputs[0];
    for (const Variable& input : inputs.subspan(1)) total = total + input;
    return total;
  }
};

TEST(Module, MayTakeSeveralInputs) {
  Sequential model;
  auto& total = model.add<Total>("total");
  int calls = 0;
  const HookHandle hook = total.register_forward_pre_hook([&](Module&) { ++calls; });
  total.register_input_transform([](const Variable& x) { return scale(x, 2.0f); });
  total.register_output_transform([](const Variable& x) { return scale(x, 10.0f); });
  const std::vector<Variable> inputs{Tensor::scalar(1.0f), Tensor::scalar(2.0f),
                                     Tensor::scalar(4.0f)};
  EXPECT_EQ(total(inputs).value().item(), 140.0f);
  EXPECT_EQ(total(Tensor::scalar(3.0f)).value().item(), 60.0f);
  EXPECT_EQ(calls, 2);
}

TEST(Module, TakesOneInputUnlessItSaysOtherwise) {
  Sequential model;
  auto& shift = model.add<Shift>("shift");
  const std::vector<Variable> two{input(), input()};
  expect_throws<ShapeError>([&] { shift(two); }, "layer 'shift' (shift) takes one input, found 2");
  expect_throws<ShapeError>([&] { shift(std::vector<Variable>()); }, "takes one input, found 0");
  EXPECT_EQ(shift(std::vector<Variable>{input()}).shape(), (Shape{1, 2}));
}

TEST(Module, KnowsItsOwnParametersAndSaysNothingOfItself) {
  Model model;
  EXPECT_TRUE(model.root.own_parameters().empty());
  ASSERT_EQ(model.a->own_parameters().size(), 1u);
  EXPECT_EQ(model.a->own_parameters()[0].first, "shift");
  EXPECT_EQ(model.a->description(), "");
  EXPECT_EQ(model.a->uses_per_weight({2}), 0);
  EXPECT_FALSE(model.a->joins_branches());
  EXPECT_EQ(model.a->child_inputs({2}), std::vector<Shape>());
}

TEST(Module, InitializeIsAFunctionOfSeedAndName) {
  Model one, two;
  one.root.initialize(5);
  two.root.initialize(5);
  EXPECT_EQ(one.a->seed, 5u);
  const auto values = [](const Model& model, const char* name) {
    return model.root.parameter(name)->values().to_vector();
  };
  EXPECT_EQ(values(one, "block.a.shift"), values(two, "block.a.shift"));
  EXPECT_NE(values(one, "block.a.shift"), values(one, "out.shift"));
  two.root.initialize(6);
  EXPECT_NE(values(one, "block.a.shift"), values(two, "block.a.shift"));
}

TEST(Module, TrainAndEvalReachEveryModule) {
  Model model;
  EXPECT_TRUE(model.b->training());
  model.root.eval();
  for (Module* module : model.root.modules()) EXPECT_FALSE(module->training());
  model.root.train();
  for (Module* module : model.root.modules()) EXPECT_TRUE(module->training());
}

TEST(EvaluationMode, RestoresEachModulesMode) {
  Model model;
  const auto modes = [&] {
    std::vector<bool> all;
    for (const Module* module : model.root.modules()) all.push_back(module->training());
    return all;
  };
  model.b->eval();
  const std::vector<bool> before = modes();
  {
    const EvaluationMode mode(model.root);
    EXPECT_EQ(modes(), std::vector<bool>(before.size(), false));
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_EQ(modes(), before);
  EXPECT_TRUE(grad_enabled());
  model.root.eval();  // the root's mode does not tell that of the others
  model.b->train();
  { const EvaluationMode mode(model.root), inner(model.root); }
  EXPECT_TRUE(model.b->training());
  EXPECT_FALSE(model.root.training());
}

TEST(Module, RequiresDenseReachesTheParametersBelow) {
  Model model;
  model.root.modules()[1]->set_requires_dense(true);  // block
  EXPECT_TRUE(model.root.parameter("block.a.shift")->requires_dense);
  EXPECT_TRUE(model.root.parameter("block.b.shift")->requires_dense);
  EXPECT_FALSE(model.root.parameter("out.shift")->requires_dense);
  model.root.set_requires_dense(false);
  EXPECT_FALSE(model.root.parameter("block.a.shift")->requires_dense);
}

TEST(Module, SetTrainableReachesModulesAndParametersBelow) {
  Model model;
  Module& block = *model.root.modules()[1];
  block.set_trainable(false);
  EXPECT_FALSE(block.trainable());
  EXPECT_FALSE(model.a->trainable());
  EXPECT_FALSE(model.root.parameter("block.b.shift")->trainable);
  EXPECT_TRUE(model.root.trainable());
  EXPECT_TRUE(model.root.parameter("out.shift")->trainable);
  model.root.set_trainable(true);
  EXPECT_TRUE(block.trainable());
  EXPECT_TRUE(model.root.parameter("block.b.shift")->trainable);
}

TEST(Module, FreezeTakesGlobsOfFullNames) {
  Model model;
  model.root.freeze({"block.a.*", "o?t.shift"});
  EXPECT_FALSE(model.root.parameter("block.a.shift")->trainable);
  EXPECT_FALSE(model.root.parameter("out.shift")->trainable);
  EXPECT_TRUE(model.root.parameter("block.b.shift")->trainable);
  EXPECT_FALSE(model.a->trainable());  // all that it has is frozen
  EXPECT_TRUE(model.b->trainable());
  expect_throws<ConfigError>([&] { model.root.freeze({"block.c.shift"}); },
                             "'block.c.shift' matches no parameter; did you mean 'block.");
}

TEST(Module, ForwardPreHooksRunUntilRemoved) {
  Model model;
  std::vector<std::string> seen;
  const auto note = [&](Module& module) { seen.push_back(module.path()); };
  HookHandle on_a = model.a->register_forward_pre_hook(note);
  HookHandle on_root = model.root.register_forward_pre_hook(note);
  model.root(input());
  EXPECT_THAT(seen, ElementsAre("", "block.a"));
  on_a.remove();
  model.root(input());
  EXPECT_THAT(seen, ElementsAre("", "block.a", ""));
  on_root.remove();
  model.root(input());
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Module, ApplyHandsItselfToTheAlgorithm) {
  struct Algorithm {
    void apply(Module& module) { applied = &module; }
    Module* applied = nullptr;
  } algorithm;
  Model model;
  model.root.apply(algorithm);
  EXPECT_EQ(algorithm.applied, &model.root);
}

TEST(StateDict, RoundTripRestoresValuesMasksAndExtraState) {
  Model saved;
  saved.root.initialize(1);
  BitMask mask = BitMask::ones(3);
  mask.reset(1);
  const ParameterPtr sparse = saved.root.parameter("block.b.shift");
  sparse->set_pattern(Pattern::masked({3}, mask));
  sparse->prune();
  saved.root(input());
  saved.root(input());
  const StateDict state = saved.root.state_dict();
  EXPECT_TRUE(state.contains("block.b.shift_mask"));
  EXPECT_FALSE(state.contains("block.a.shift_mask"));
  EXPECT_EQ(state.get<int64_t>("block.a/calls"), 2);

  Model loaded;
  loaded.root.initialize(2);
  loaded.root.load_state_dict(state);
  for (const std::string& name : names(saved.root)) {
    const ParameterPtr from = saved.root.parameter(name), to = loaded.root.parameter(name);
    EXPECT_EQ(to->values().to_vector(), from->values().to_vector()) << name;
    EXPECT_EQ(to->mask(), from->mask()) << name;
  }
  EXPECT_EQ(loaded.a->calls, 2);
  // Loading a dense state makes the parameter dense again.
  Model dense;
  dense.root.initialize(3);
  loaded.root.load_state_dict(dense.root.state_dict());
  EXPECT_TRUE(loaded.root.parameter("block.b.shift")->pattern()->is_dense());
  EXPECT_EQ(loaded.root.parameter("block.b.shift")->values().to_vector(),
            dense.root.parameter("block.b.shift")->values().to_vector());
}

TEST(StateDict, CompressedParametersComeBackInTheirLayout) {
  Model saved, loaded;
  saved.root.initialize(1);
  const ParameterPtr sparse = saved.root.parameter("block.b.shift");
  const std::vector<int64_t> kept{0, 2};
  sparse->set_pattern(Pattern::make(csr_layout(), {3}, Positions::of({3}, kept)));
  const StateDict state = saved.root.state_dict();
  EXPECT_FALSE(state.contains("block.b.shift"));
  EXPECT_TRUE(state.contains("block.b.shift/indptr"));
  loaded.root.load_state_dict(state);
  const ParameterPtr back = loaded.root.parameter("block.b.shift");
  EXPECT_EQ(&back->pattern()->layout(), &csr_layout());
  EXPECT_EQ(back->to_dense().to_vector(), sparse->to_dense().to_vector());
  EXPECT_EQ(back->mask(), sparse->mask());
}

TEST(StateDict, ADamagedCompressedParameterIsNamedAndNothingIsChanged) {
  Model saved, loaded;
  saved.root.initialize(1);
  loaded.root.initialize(2);
  saved.root.parameter("out.shift")
      ->set_pattern(Pattern::make(csr_layout(), {2}, Positions::all({2})));
  StateDict state = saved.root.state_dict();
  state.set("out.shift/indices", std::vector<uint32_t>{0, 1, 1});
  const auto before = loaded.root.parameter("block.a.shift")->values().to_vector();
  expect_throws<CheckpointError>([&] { loaded.root.load_state_dict(state); },
                                 "the parameter 'out.shift' in the checkpoint: expected a value "
                                 "for each of its 3 indices, found values of shape [2]");
  EXPECT_EQ(loaded.root.parameter("block.a.shift")->values().to_vector(), before);
}

TEST(StateDict, DifferencesAreListedAndNothingIsChanged) {
  Model saved, loaded;
  saved.root.initialize(1);
  loaded.root.initialize(2);
  const auto before = loaded.root.parameter("block.a.shift")->values().to_vector();
  StateDict state;
  state.set("block.a.shift", saved.root.parameter("block.a.shift")->to_dense());
  state.set("block.b.shift", Tensor::zeros({4}));
  state.set("head.shift", Tensor::zeros({2}));
  expect_throws<CheckpointError>([&] { loaded.root.load_state_dict(state); },
                                 "the checkpoint belongs to a different model: 'block.b.shift' is "
                                 "[3] in the model, [4] in the checkpoint; 'out.shift' [2] is in "
                                 "the model only; 'head.shift' [2] is in the checkpoint only");
  EXPECT_EQ(loaded.root.parameter("block.a.shift")->values().to_vector(), before);
  state.set("out.shift", std::vector<int64_t>{1, 2});
  expect_throws<CheckpointError>([&] { loaded.root.load_state_dict(state); },
                                 "'out.shift' is not a floating-point array in the checkpoint");
}

// A file has as many names as it likes, and they may be anything.
TEST(StateDict, OfManyDifferencesSomeAreListed) {
  Model model;
  model.root.initialize(1);
  StateDict state = model.root.state_dict();
  for (int i = 0; i < 5000; ++i) {
    state.set("wrong\n" + std::to_string(i) + ".weight", Tensor::zeros({1}));
  }
  try {
    model.root.load_state_dict(state);
    FAIL() << "loaded";
  } catch (const CheckpointError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, testing::HasSubstr("'wrong\\x0a0.weight' [1] is in the checkpoint only"));
    EXPECT_THAT(text, testing::EndsWith("; and 4992 more"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("\n")));
  }
}

// Registers what it is given.
class Holder final : public Module {
 public:
  using Module::register_module;
  using Module::register_parameter;
  std::string_view type() const override { return "holder"; }

 protected:
  Variable forward(const Variable& input) override { return input; }
};

TEST(Module, NullChildrenAndParametersAreErrors) {
  Holder holder;
  expect_throws<StateError>([&] { holder.register_module("a", nullptr); },
                            "module '' was given no child for 'a': the pointer is null");
  expect_throws<StateError>([&] { holder.register_parameter("w", nullptr); },
                            "module '' was given no parameter for 'w': the pointer is null");
  EXPECT_TRUE(holder.children().empty());
  EXPECT_TRUE(holder.parameters().empty());
  Sequential chain;
  expect_throws<StateError>([&] { chain.add("a", std::unique_ptr<Module>()); },
                            "the pointer is null");
  EXPECT_TRUE(chain.chain().inputs(Shape{1}).empty());
}

}  // namespace
}  // namespace lacuna::module_test
