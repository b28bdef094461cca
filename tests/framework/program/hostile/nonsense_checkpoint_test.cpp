// Checkpoints with a valid seal and nonsense in them: refused by file and name, or taken as they
// are; never a crash.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/param/saved_parameter.hpp"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"
#include "throws.h"

namespace lacuna::nonsense_checkpoint_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

using Value = StateDict::Value;

// Too short, too long, and with one of some elements changed to each of `others`.
template <class T>
void add_lists(const std::vector<T>& list, const std::vector<T>& others,
               std::vector<Value>& changed) {
  changed.emplace_back(std::vector<T>());
  std::vector<T> longer = list;
  longer.push_back(list.empty() ? T{1} : list.back());
  changed.emplace_back(longer);
  for (const size_t i : {size_t{0}, list.size() / 2, list.size() - 1}) {
    if (i >= list.size()) continue;
    for (const T other : others) {
      std::vector<T> one = list;
      one[i] = other;
      changed.emplace_back(one);
    }
  }
}

std::vector<Value> nonsense(const Value& value) {
  std::vector<Value> changed{std::string("nonsense"), Tensor::zeros({2, 3})};
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    for (const int64_t other : {int64_t{-1}, kLeast, kMost, int64_t{1} << 40, *integer + 1}) {
      changed.emplace_back(other);
    }
  } else if (std::holds_alternative<double>(value)) {
    for (const double other : {std::nan(""), -double{INFINITY}, -1.0, 1e308})
      changed.emplace_back(other);
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    add_lists<int64_t>(*list, {-1, kLeast, kMost, int64_t{1} << 33, 0}, changed);
  } else if (const auto* indices = std::get_if<std::vector<uint32_t>>(&value)) {
    add_lists<uint32_t>(*indices, {0xffffffffu, 0u, 784u}, changed);
  } else if (const auto* array = std::get_if<Tensor>(&value)) {
    changed.emplace_back(Tensor::zeros(Shape{array->numel() + 1}));
    changed.emplace_back(Tensor::zeros(Shape{0}));
  } else if (const auto* bytes = std::get_if<ByteArray>(&value)) {
    std::vector<uint8_t> more = bytes->values;
    more.push_back(255);
    changed.emplace_back(ByteArray{{static_cast<int64_t>(more.size())}, more});
    changed.emplace_back(ByteArray{{0}, {}});
  } else if (const auto* int8 = std::get_if<SignedBytes>(&value)) {
    std::vector<int8_t> more = int8->values;
    more.push_back(-1);
    changed.emplace_back(SignedBytes{{static_cast<int64_t>(more.size())}, more});
    changed.emplace_back(SignedBytes{{0}, {}});
  }
  return changed;
}

// Whether a value of the right type cannot be taken for one that a run has saved.
bool is_impossible(const Value& value, const Value& before) {
  const auto none = [](const auto& list, const auto& old, auto beyond) {
    return list.size() != old.size() ||
           std::ranges::any_of(list, [&](auto v) { return v < 0 || v >= beyond; });
  };
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer < -1 || *integer == kMost;
  if (const auto* number = std::get_if<double>(&value)) return !std::isfinite(*number);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return none(*list, std::get<std::vector<int64_t>>(before), int64_t{1} << 33);
  }
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&value)) {
    return none(*list, std::get<std::vector<uint32_t>>(before), 784u);
  }
  return !std::holds_alternative<std::string>(value);  // arrays of another shape
}

// Whether a message names a dataset: one part of its path below the first.
bool names(const std::string& message, const std::string& dataset) {
  if (dataset.ends_with("/type") && message.find("'nonsense'") != std::string::npos) return true;
  size_t begin = dataset.find('/') + 1;
  while (true) {
    const size_t end = std::min(dataset.find('/', begin), dataset.size());
    if (message.find(dataset.substr(begin, end - begin)) != std::string::npos) return true;
    if (end == dataset.size()) return false;
    begin = end + 1;
  }
}

StateDict state_of(const Experiment& e) {
  StateDict state;
  state.merge("model", e.model->state_dict());
  state.merge("optimizer", e.optimizer->state_dict());
  state.merge("algorithm", e.sparsity->state_dict());
  state.merge("loader", e.loader->state());
  return state;
}

/// A run of four steps, to be resumed for a fifth from checkpoints that are not its own.
class NonsenseCheckpoint : public RunFixture {
 protected:
  void begin(const std::string& sparsity) {
    std::filesystem::remove_all(run_dir());
    const Ended ended = train({"--set", "sparsity=" + sparsity, "--set", "train.steps=4", "--set",
                               "data.train_size=50", "--set", "data.test_size=10"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    good_ = read_checkpoint(checkpoint(4));
    config_ = load_yaml(run_dir() + "/config.yaml");
    config_.set_path("train.steps", int64_t{5});
    data_ = build_experiment(config_.clone(), Start::FromCheckpoint)->data;
  }

  // What loading throws, as below but without a file and on data that is there, which both take
  // more time than it.
  std::string load(const StateDict& state, const std::string& dataset) {
    const auto experiment = build_experiment_on(data_, config_, Start::FromCheckpoint);
    try {
      experiment->load_state_dict(state);
    } catch (const CheckpointError& error) {
      EXPECT_TRUE(names(error.what(), dataset)) << error.what();
      return error.what();
    }
    expect_loaded(*experiment, state);
    return "";
  }

  // Each value is that of the state, or what it was before the nonsense.
  void expect_loaded(const Experiment& experiment, const StateDict& state) {
    const auto holds = [](const StateDict& s, const std::string& name, const Value& value) {
      const auto found = s.values().find(name);
      return found != s.values().end() && is_identical(value, found->second);
    };
    const StateDict loaded = state_of(experiment);
    for (const auto& [name, value] : loaded.values()) {
      EXPECT_TRUE(holds(state, name, value) || holds(good_.state, name, value)) << name;
    }
  }

  // What resuming throws; empty when it goes on, which it then does for a step.
  std::string resume(const Checkpoint& from, const std::string& dataset) {
    const std::string path = folder_ / "nonsense.h5";
    write_checkpoint(path, from);
    const auto experiment = build_experiment(config_.clone(), Start::FromCheckpoint);
    Trainer trainer(*experiment, RunFolder::open(run_dir()), ProgressStyle::Lines);
    try {
      trainer.resume(CheckpointFile(path));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      EXPECT_TRUE(names(error.what(), dataset)) << error.what();
      return error.what();
    }
    expect_loaded(*experiment, from.state);
    trainer.run();
    return "";
  }

  void expect_no_nonsense() {
    ASSERT_EQ(resume(good_, "step"), "");
    for (const auto& [name, value] : good_.state.values()) {
      if (name.starts_with("data/")) continue;               // for eval and predict: below
      if (name.find("bias") != std::string::npos) continue;  // as the weights
      SCOPED_TRACE(name);
      for (const Value& other : nonsense(value)) {
        Checkpoint changed = good_;
        changed.state.set(name, other);
        const bool is_trainers = name.starts_with("trainer/");
        const std::string message = is_trainers ? resume(changed, name) : load(changed.state, name);
        const bool must_refuse = other.index() != value.index() || is_impossible(other, value);
        EXPECT_TRUE(!must_refuse || !message.empty());
      }
    }
  }

  Checkpoint good_;
  Config config_;
  DataSplits data_;
};

TEST_F(NonsenseCheckpoint, OfCompressedParameters) {
  begin("{algorithm: rigl, sparsity: 0.9, update: {freq: 2}, layout: csr, param_filter: default}");
  expect_no_nonsense();
}

TEST_F(NonsenseCheckpoint, OfPatterns) {
  begin(
      "[{algorithm: static, pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: fc1.weight},"
      " {algorithm: set, sparsity: 0.5, pattern: {type: block, rows: 2, cols: 4}, layout: block, "
      "param_filter: fc2.weight, "
      "update: {freq: 2}}]");
  expect_no_nonsense();
}

TEST_F(NonsenseCheckpoint, OfMaskedOnesWithShadowsAndMomentum) {
  begin(
      "[{algorithm: snfs, sparsity: 0.9, update: {freq: 2}, param_filter: fc1.weight, layout: "
      "masked}, {algorithm: ste, sparsity: 0.5, update: {freq: 2}, layout: masked, param_filter: "
      "fc2.weight}]");
  expect_no_nonsense();
}

TEST_F(NonsenseCheckpoint, OfPhases) {
  begin(
      "{layout: csr, phases: [{until: 3, algorithm: set, sparsity: 0.9, update: {freq: 2}}, "
      "{algorithm: static, sparsity: 0.95}]}");
  expect_no_nonsense();
}

TEST_F(NonsenseCheckpoint, OfAttributes) {
  begin("{sparsity: 0.9, layout: csr, param_filter: default}");
  const auto refuses = [&](const std::string& attribute,
                           const std::function<void(Checkpoint&)>& f) {
    Checkpoint changed = good_;
    f(changed);
    const std::string message = resume(changed, attribute);
    EXPECT_THAT(message, HasSubstr("its attribute '" + attribute + "' is ")) << attribute;
  };
  for (const int64_t value : {int64_t{-1}, kLeast, kMost}) {
    refuses("metrics_bytes", [&](Checkpoint& c) { c.metrics_bytes = value; });
    refuses("step", [&](Checkpoint& c) { c.step = value; });
  }
  refuses("step", [&](Checkpoint& c) { c.step = 3; });
  for (const double value : {-1.0, std::nan(""), static_cast<double>(INFINITY)}) {
    refuses("train_seconds", [&](Checkpoint& c) { c.train_seconds = value; });
  }
}

// A state that stands at no step of a run.
TEST_F(NonsenseCheckpoint, OfPartsOfDifferentSteps) {
  begin("{phases: [{until: 3, sparsity: 0.9}, {sparsity: 0.95}], layout: csr}");
  const auto refuses = [&](const std::string& name, int64_t value, const std::string& message) {
    Checkpoint changed = good_;
    changed.state.set(name, value);
    EXPECT_THAT(resume(changed, name), HasSubstr(message));
  };
  const std::string after = ", which does not match 'trainer/step' = 4";
  refuses("optimizer/step", 5, "'optimizer/step' in the saved state is 5" + after);
  refuses("loader/epoch", 7, "'loader/epoch' in the saved state is 7" + after);
  refuses("loader/batch", 1, "'loader/batch' in the saved state is 1" + after);
  refuses("algorithm/step", 5, "'algorithm/step' in the saved state is 5, expected a count of at");
  refuses("algorithm/step", 2, "is in phase 1 at step 2, but the plan is in another");
  refuses("algorithm/phase", 0, "is in phase 0 at step 4, but the plan is in another");
  refuses("optimizer/fc1.bias/step", 5, "'fc1.bias/step' is 5, expected a count of at most 4");
  refuses("trainer/epoch_correct", 1000, "'trainer/epoch_correct' in the saved state is 1000");
}

// What is looked at without a model that says what is expected.
TEST_F(NonsenseCheckpoint, IsRefusedByInspectEvalAndPredict) {
  begin("{pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: fc1.weight}");
  const std::string path = folder_ / "nonsense.h5";
  const auto refuses = [&](const std::string& command, const std::string& name, const Value& value,
                           const std::string& message) {
    Checkpoint changed = good_;
    changed.state.set(name, value);
    write_checkpoint(path, changed);
    std::vector<std::string> arguments{command, path};
    if (command == "predict") arguments.insert(arguments.end(), {"x.csv", "--out", "y.csv"});
    const Ended ended = run_lacuna(arguments);
    EXPECT_EQ(ended.code, 1) << command << " " << name;
    EXPECT_THAT(ended.err, HasSubstr(path + ": ")) << command << " " << name;
    EXPECT_THAT(ended.err, HasSubstr(message)) << command << " " << name;
  };
  // Three of the first four columns: what csr holds, and 2:4 does not.
  std::vector<uint32_t> three = good_.state.get<std::vector<uint32_t>>("model/fc1.weight/indices");
  std::iota(three.begin(), three.begin() + 3, 0u);
  const std::string indices = "model/fc1.weight/indices";
  refuses("inspect", indices, three, "the parameter 'fc1.weight' in the checkpoint: ");
  refuses("inspect", "model/fc1.weight/shape", std::vector<int64_t>{12, 4294967292},
          "its shape [12, 4294967292] is not one of a matrix in layout");
  refuses("inspect", "model/fc1.weight/shape", std::vector<int64_t>{12, -4}, "negative dimension");
  for (const char* command : {"eval", "predict"}) {
    refuses(command, indices, three, "the parameter 'fc1.weight' in the checkpoint: ");
    refuses(command, "data/example_shape", std::vector<int64_t>{28, -28},
            "'data/example_shape' in the saved state: negative dimension");
  }
}

}  // namespace
}  // namespace lacuna::nonsense_checkpoint_test
