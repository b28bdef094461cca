// Buffers of modules: arrays that are saved and loaded, and not trained.
#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/nn/sequential.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::buffers_test {
namespace {

using testing::ElementsAre;

// Counts the examples it has seen, for each feature; has one parameter and no gradient.
class Counter final : public Module {
 public:
  struct Options {
    int64_t features = 2;
  };
  explicit Counter(const Options& options)
      : seen(register_buffer("seen", Tensor::zeros({options.features}))) {
    register_parameter("scale",
                       std::make_shared<Parameter>(Shape{options.features}, Initializer()));
  }
  std::string_view type() const override { return "counter"; }
  void add(const std::string& name) { register_buffer(name, Tensor::zeros({1})); }

  Tensor& seen;

 protected:
  Variable forward(const Variable& input) override {
    for (float& count : seen.mutable_storage()) {
      count += static_cast<float>(input.value().shape()[0]);
    }
    return input;
  }
};

// Keeps an array among what it keeps besides, as modules could before there were buffers.
class Keeper final : public Module {
 public:
  std::string_view type() const override { return "keeper"; }
  float kept = 0.0f;

 protected:
  Variable forward(const Variable& input) override { return input; }
  StateDict extra_state() const override {
    StateDict state;
    state.set("kept", Tensor::scalar(kept));
    return state;
  }
  void load_extra_state(const StateDict& state) override {
    kept = state.get<Tensor>("kept").item();
  }
};

// block.a, b.
struct Model {
  explicit Model(int64_t features = 2) {
    auto block = std::make_unique<Sequential>();
    a = &block->add<Counter>("a", {.features = features});
    root.add("block", std::move(block));
    b = &root.add<Counter>("b", {.features = features});
  }
  Sequential root;
  Counter* a;
  Counter* b;
};

std::vector<float> seen(const Counter& counter) { return counter.seen.to_vector(); }

TEST(Buffers, AreListedByTheirFullNames) {
  Model model;
  const auto buffers = model.root.buffers();
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].first, "block.a.seen");
  EXPECT_EQ(buffers[0].second, &model.a->seen);
  EXPECT_EQ(buffers[1].first, "b.seen");
  EXPECT_EQ(model.root.parameters().size(), 2u);  // they are none of these
}

TEST(Buffers, ASavedStateIsACopyAndComesBack) {
  const TemporaryFolder folder;
  Model model, loaded;
  model.root(Tensor::zeros({3, 2}));
  Checkpoint checkpoint;
  checkpoint.state = model.root.state_dict();
  EXPECT_TRUE(checkpoint.state.contains("block.a/seen"));
  model.root(Tensor::zeros({4, 2}));
  EXPECT_THAT(seen(*model.a), ElementsAre(7, 7));
  write_checkpoint(folder / "state.h5", checkpoint);
  const StateDict read = read_checkpoint(folder / "state.h5").state;
  loaded.root.load_state_dict(read);
  EXPECT_THAT(seen(*loaded.a), ElementsAre(3, 3));
  loaded.root(Tensor::zeros({1, 2}));
  EXPECT_THAT(seen(*loaded.b), ElementsAre(4, 4));
  EXPECT_THAT(read.get<Tensor>("b/seen").to_vector(), ElementsAre(3, 3));
}

TEST(Buffers, InitializeGivesBackTheFirstValues) {
  Model model;
  model.root(Tensor::zeros({3, 2}));
  model.root.initialize(1);
  EXPECT_THAT(seen(*model.a), ElementsAre(0, 0));
  model.root(Tensor::zeros({1, 2}));
  model.root.initialize(1);
  EXPECT_THAT(seen(*model.a), ElementsAre(0, 0));
}

TEST(Buffers, DifferencesAreListedAndNothingIsChanged) {
  Model model;
  model.root(Tensor::zeros({3, 2}));
  StateDict state;
  state.set("block.a.scale", Tensor::zeros({2}));
  state.set("b.scale", Tensor::zeros({2}));
  state.set("block.a/seen", Tensor::zeros({5}));
  state.set("block.c/seen", Tensor::zeros({2}));
  state.set("/lost", Tensor::zeros({1}));
  expect_throws<CheckpointError>(
      [&] { model.root.load_state_dict(state); },
      "the checkpoint belongs to a different model: 'block.a.seen' is [2] in the model, [5] in the "
      "checkpoint; 'b.seen' [2] is in the model only; 'lost' [1] is in the checkpoint only; "
      "'block.c.seen' [2] is in the checkpoint only");
  EXPECT_THAT(seen(*model.a), ElementsAre(3, 3));
}

TEST(Buffers, ArraysThatModulesKeepOtherwiseAreNoBuffers) {
  Sequential model, loaded;
  model.add("keeper", std::make_unique<Keeper>());
  loaded.add("keeper", std::make_unique<Keeper>());
  static_cast<Keeper*>(model.modules()[1])->kept = 2.0f;
  loaded.load_state_dict(model.state_dict());
  EXPECT_EQ(static_cast<Keeper*>(loaded.modules()[1])->kept, 2.0f);
}

TEST(Buffers, WhatAModuleKeepsOtherwiseMustBeSavedToo) {
  Model model;
  model.root.add("keeper", std::make_unique<Keeper>());
  model.root(Tensor::zeros({3, 2}));
  StateDict state;
  for (const auto& [key, value] : model.root.state_dict().values()) {
    if (key != "keeper/kept") state.set(key, value);
  }
  model.root(Tensor::zeros({1, 2}));
  expect_throws<CheckpointError>([&] { model.root.load_state_dict(state); },
                                 "'keeper.kept' is in the model only");
  EXPECT_THAT(seen(*model.a), ElementsAre(4, 4));
}

TEST(Buffers, PartsOfCompressedParametersAreNoBuffers) {
  Model model, loaded;
  model.root.parameter("b.scale")->set_pattern(
      Pattern::make(csr_layout(), {2}, Positions::all({2})));
  loaded.root.load_state_dict(model.root.state_dict());
  EXPECT_EQ(&loaded.root.parameter("b.scale")->pattern()->layout(), &csr_layout());
}

TEST(Buffers, BadNamesAreErrors) {
  Model model;
  for (const char* name : {"", "a.b", "a/b"}) {
    expect_throws<StateError>(
        [&] { model.a->add(name); },
        std::string("a buffer needs a name without '.' and '/', found '") + name + "'");
  }
  for (const char* name : {"seen", "scale"}) {
    expect_throws<StateError>([&] { model.a->add(name); },
                              std::string("module 'block.a' already has a child, parameter or "
                                          "buffer named '") +
                                  name + "'");
  }
}

}  // namespace
}  // namespace lacuna::buffers_test
