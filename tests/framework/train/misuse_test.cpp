// The library in the hands of someone who has not read the manual: every mistake is an exception
// that says what it was.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "framework/train/tiny_run.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/layers/linear.h"
#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/static.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::misuse_test {
namespace {

std::unique_ptr<Sequential> small_model() {
  auto model = std::make_unique<Sequential>();
  model->add<Linear>("fc1", {.in_features = 4, .out_features = 3});
  model->add<Linear>("fc2", {.in_features = 3, .out_features = 2});
  return model;
}

TEST(Misuse, OfSparsity) {
  const auto model = small_model();
  Sgd optimizer(model->parameters(), {.lr = 0.1});
  Static early({.sparsity = 0.5});
  expect_throws<StateError>([&] { optimizer.apply(early); }, "model");
  Static sparsity({.sparsity = 0.5});
  model->apply(sparsity);
  expect_throws<StateError>([&] { model->apply(sparsity); }, "has been applied to a model already");
  Static second({.sparsity = 0.5});
  expect_throws<StateError>([&] { model->apply(second); },
                            "parameter 'fc1.weight' is made sparse by 'static' already");
  optimizer.apply(sparsity);
  expect_throws<StateError>([&] { optimizer.apply(sparsity); }, "");
  const auto other = small_model();
  Sgd stranger(other->parameters(), {.lr = 0.1});
  Static third({.sparsity = 0.5});
  const auto model3 = small_model();
  model3->apply(third);
  expect_throws<StateError>([&] { stranger.apply(third); }, "fc1.weight");
}

TEST(Misuse, OfShapesAndLabels) {
  const auto model = small_model();
  expect_throws<ShapeError>([&] { (*model)(Variable(Tensor::zeros(Shape{2, 5}))); }, "[2, 5]");
  expect_throws<ShapeError>([&] { (*model)(Variable(Tensor::zeros(Shape()))); }, "");
  const Variable output = (*model)(Variable(Tensor::zeros(Shape{2, 4})));
  const auto loss = [&](const Shape& shape, const std::vector<int64_t>& labels) {
    return cross_entropy(output, IndexTensor(shape, labels));
  };
  expect_throws<Error>([&] { loss(Shape{2}, {0, 2}); }, "2");
  expect_throws<Error>([&] { loss(Shape{2}, {-1, 1}); }, "-1");
  expect_throws<ShapeError>([&] { loss(Shape{3}, {0, 1, 1}); }, "[3]");
  expect_throws<ShapeError>([&] { mse_loss(output, Tensor::zeros(Shape{2, 3})); }, "[2, 3]");
  const Variable once = loss(Shape{2}, {0, 1});
  backward(once);
  expect_throws<StateError>([&] { backward(once); }, "");
  expect_throws<ShapeError>([&] { backward((*model)(Variable(Tensor::zeros(Shape{2, 4})))); }, "");
}

TEST(Misuse, OfOptimizers) {
  expect_throws<StateError>([] { Sgd({}, {.lr = 0.1}); }, "parameter");
  const auto model = small_model();
  expect_throws<ConfigError>([&] { Sgd(model->parameters(), {.lr = -0.1}); }, "lr");
}

TEST(Misuse, OfAModelWithNothingToTrain) {
  expect_throws<Error>(
      [] {
        build_experiment(parse_yaml("data: {type: csv, train: x.csv}\nmodel: [relu]\n", "m.yaml"));
      },
      "optimizer: a required key is missing");
}

// A Trainer without the program, in a folder that takes no file.
TEST(Misuse, OfATrainerWhoseFolderIsGone) {
  const TemporaryFolder folder;
  const auto experiment = build_experiment(parse_yaml(kTinyRun, "tiny.yaml"));
  Trainer trainer(*experiment, RunFolder::create(folder / "run", "a: 1\n"), ProgressStyle::Lines);
  EXPECT_EQ(trainer.total_steps(), 18);
  expect_throws<CheckpointError>([&] { trainer.resume(CheckpointFile(folder / "none.h5")); },
                                 "none.h5");
  std::filesystem::remove_all(folder / "run");
  expect_throws<StateError>([&] { trainer.run(); }, "cannot write '" + (folder / "run/metrics"));
}

// Only finite numbers are saved, of what is not trained, too.
TEST(Misuse, OfABufferThatIsNotFinite) {
  struct Gauge final : Module {
    Gauge() { register_buffer("level", Tensor::full({2}, std::numeric_limits<float>::infinity())); }
    std::string_view type() const override { return "gauge"; }
    Variable forward(const Variable& input) override { return input; }
  };
  layer_registry().add("gauge", "holds an infinite buffer",
                       [](const Config&, const Shape&) -> std::unique_ptr<Module> {
                         return std::make_unique<Gauge>();
                       });
  const TemporaryFolder folder;
  Config config = parse_yaml(kTinyRun, "tiny.yaml");
  config.get("model").push_back(Config("gauge"));
  const auto experiment = build_experiment(config);
  Trainer trainer(*experiment, RunFolder::create(folder / "run", "a: 1\n"), ProgressStyle::Lines);
  expect_throws<Error>([&] { trainer.run(); },
                       "the buffer 'gauge1.level' is NaN or infinite before the first step");
}

TEST(Misuse, OfASavedInputFormat) {
  const InputFormat format{.example_shape = {2, 3},
                           .normalization = {.mean = {0.1307, 1e-30}, .std = {1.0 / 3, 2}}};
  StateDict state = format.state_dict();
  EXPECT_EQ(InputFormat::from_state(state).normalization, format.normalization);
  EXPECT_EQ(InputFormat::from_state(state).example_shape, format.example_shape);
  EXPECT_FALSE(state.contains("class_names"));
  InputFormat named = format;
  named.class_names = {"001", "a, b", "yes", "'"};
  EXPECT_EQ(InputFormat::from_state(named.state_dict()).class_names, named.class_names);
  StateDict unnamed = named.state_dict();
  unnamed.set("class_names", std::string("{a: 1}"));
  expect_throws<CheckpointError>([&] { InputFormat::from_state(unnamed); },
                                 "the checkpoint's data format cannot be read: class_names");
  state.set("normalization", std::string("{mean: [0"));
  expect_throws<CheckpointError>([&] { InputFormat::from_state(state); },
                                 "the checkpoint's data format cannot be read");
  expect_throws<CheckpointError>([] { InputFormat::from_state({}); }, "example_shape");
}

}  // namespace
}  // namespace lacuna::misuse_test
