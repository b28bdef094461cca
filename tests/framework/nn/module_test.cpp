#include "lacuna/framework/nn/module.h"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna {
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
  expect_throws<StateError>([&] { model.add<Shift>("a"); }, "has two children named 'a'");
  for (const char* name : {"", "a.b", "a/b"}) {
    expect_throws<StateError>(
        [&] { model.add<Shift>(name); },
        std::string("must not be empty nor contain '.' or '/', found '") + name + "'");
  }
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

TEST(Module, RequiresDenseReachesTheParametersBelow) {
  Model model;
  model.root.modules()[1]->set_requires_dense(true);  // block
  EXPECT_TRUE(model.root.parameter("block.a.shift")->requires_dense);
  EXPECT_TRUE(model.root.parameter("block.b.shift")->requires_dense);
  EXPECT_FALSE(model.root.parameter("out.shift")->requires_dense);
  model.root.set_requires_dense(false);
  EXPECT_FALSE(model.root.parameter("block.a.shift")->requires_dense);
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
  expect_throws<CheckpointError>(
      [&] { loaded.root.load_state_dict(state); },
      "the checkpoint is of another model: 'block.b.shift' is [3] in the model, [4] in the "
      "checkpoint; 'out.shift' [2] is in the model only; 'head.shift' [2] is in the checkpoint "
      "only");
  EXPECT_EQ(loaded.root.parameter("block.a.shift")->values().to_vector(), before);
}

}  // namespace
}  // namespace lacuna
