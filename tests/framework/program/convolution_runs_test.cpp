// Runs of convolutional networks: stopped, killed and resumed they end as uninterrupted ones, and
// what was measured for them stands in their configuration.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "framework/train/tiny_convolution.h"
#include "lacuna/framework/param/saved_parameter.hpp"

namespace lacuna::convolution_runs_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kKill = -9;
constexpr int64_t kSteps = 8;

class ConvolutionRuns : public RunFixture {
 protected:
  // 4 steps an epoch, of two batches each, the last one of 4 examples; RigL changes masks at steps
  // 2, 4, 6 and 8.
  ConvolutionRuns() {
    write_text(config(),
               "data: {type: colour_glyphs, train_size: 70, test_size: 20, validation: 10, "
               "normalize: standard, augment: {crop: 4, flip: true, cutout: 8}}\nmodel:" +
                   kTinyConvolutionModel +
                   "optimizer: {type: sgd, lr: 0.05, momentum: 0.9, nesterov: true}\n"
                   "sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 2}, param_filter: '" +
                   kTinyConvolutionFilter +
                   "'}\n"
                   "train: {epochs: 2, batch_size: 8, accumulate: 2, threads: 1, log_every: 2, "
                   "eval_every: 3, checkpoint: {every: 3, keep_last: 2}}\n");
  }

  // Begins with another run's configuration, with what was measured for it.
  Ended train_as(const std::string& other, const std::string& name, const std::string& fault) {
    return run_lacuna({"train", run_dir(other) + "/config.yaml", "--run-dir", run_dir(name)},
                      {.fault = fault});
  }
  Ended resume(const std::string& name, const std::string& fault = "") const {
    return run_lacuna({"train", "--resume", "--run-dir", run_dir(name)}, {.fault = fault});
  }

  void expect_same_run(const std::string& a, const std::string& b) const {
    const Checkpoint x = read_checkpoint(checkpoint(kSteps, a));
    const Checkpoint y = read_checkpoint(checkpoint(kSteps, b));
    EXPECT_THAT(differences(x.state, y.state), IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(a)), timeless_events(run_dir(b)));
    EXPECT_EQ(listing(run_dir(a) + "/checkpoints"), listing(run_dir(b) + "/checkpoints"));
  }

  static std::vector<std::string> layout(const std::string& name) {
    return {"--set", "sparsity.layout=" + name};
  }
};

TEST_F(ConvolutionRuns, KilledAndResumedEndAsIfNothingHadHappened) {
  for (const char* name : {"auto", "csr"}) {
    SCOPED_TRACE(name);
    const std::string whole = std::string("whole_") + name, killed = std::string("killed_") + name;
    const Ended ended = train(layout(name), whole);
    ASSERT_EQ(ended.code, 0) << ended.err;
    ASSERT_EQ(train_as(whole, killed, "step.after_backward:3").code, kKill);
    for (const char* fault :
         {"step.between:4", "checkpoint.half_written:1", "step.before_update:2"}) {
      ASSERT_EQ(resume(killed, fault).code, kKill) << fault;
    }
    ASSERT_EQ(resume(killed).code, 0);
    expect_same_run(killed, whole);
    // The running moments have moved, and are part of what was compared.
    const StateDict state = read_checkpoint(checkpoint(kSteps, whole)).state;
    EXPECT_NE(state.get<Tensor>("model/layer1.bn1/running_mean").to_vector(),
              std::vector<float>(8, 0.0f));
  }
}

TEST_F(ConvolutionRuns, StoppedAndResumedEndAsIfNothingHadHappened) {
  ASSERT_EQ(train(layout("masked")).code, 0);
  const Ended ended = train_as("run", "stopped", "step.between:5:interrupt");
  EXPECT_EQ(ended.code, 130);
  EXPECT_THAT(ended.err, HasSubstr("stopped at step 5 of 8"));
  ASSERT_EQ(resume("stopped").code, 0);
  expect_same_run("stopped", "run");
}

TEST_F(ConvolutionRuns, OnTwoThreadsGiveTheSameBits) {
  ASSERT_EQ(train(layout("csr")).code, 0);
  // By the first one's configuration: what is measured depends on the number of threads.
  ASSERT_EQ(run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("two"), "--set",
                        "train.threads=2"})
                .code,
            0);
  expect_same_run("two", "run");
}

// Where what is measured is kept, for one test.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path) { set(path); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder() {
    if (had_) {
      ::setenv("LACUNA_CACHE_DIR", before_.c_str(), 1);
    } else {
      ::unsetenv("LACUNA_CACHE_DIR");
    }
  }
  static void set(const std::string& path) { ::setenv("LACUNA_CACHE_DIR", path.c_str(), 1); }

 private:
  const bool had_ = std::getenv("LACUNA_CACHE_DIR") != nullptr;
  const std::string before_ = had_ ? std::getenv("LACUNA_CACHE_DIR") : "";
};

TEST_F(ConvolutionRuns, WhatWasMeasuredStandsInTheConfigurationAndIsTakenFromThere) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:4"}).code, kKill);
  const Config limits = load_yaml(run_dir() + "/config.yaml").at("csr_up_to");
  std::vector<std::string> names;
  for (const auto& [name, limit] : limits.entries()) {
    names.push_back(name);
    EXPECT_GE(limit.as<double>(), 0.0) << name;
    EXPECT_LE(limit.as<double>(), 1.0) << name;
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("layer1.conv1.weight", "layer1.conv2.weight",
                                                   "layer2.conv1.weight", "layer2.conv2.weight"));
  // With nothing measured before, a repeat and a resume go by what stands there.
  const CacheFolder cache(folder_ / "cache");
  ASSERT_EQ(run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("again")}).code,
            0);
  ASSERT_EQ(resume("run").code, 0);
  expect_same_run("again", "run");
  EXPECT_EQ(load_yaml(run_dir("again") + "/config.yaml").at("csr_up_to").to_json(),
            limits.to_json());
}

TEST_F(ConvolutionRuns, AutoGoesByTheLimitsThatItIsGiven) {
  for (const auto& [limit, expected] : {std::pair{"0", "masked"}, std::pair{"1", "csr"}}) {
    const std::string name = std::string("by_") + expected;
    const Ended ended =
        train({"--set",
               std::string("csr_up_to={layer1.conv1.weight: 1, layer1.conv2.weight: 0, "
                           "layer2.conv1.weight: 0, layer2.conv2.weight: ") +
                   limit + "}",
               "--set", "train.steps=3"},
              name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const StateDict model = read_checkpoint(checkpoint(3, name)).state.below("model");
    EXPECT_EQ(SavedParameter(model, "layer2.conv2.weight").layout().name(), expected);
    EXPECT_EQ(SavedParameter(model, "layer1.conv1.weight").layout().name(), "csr");
    EXPECT_EQ(SavedParameter(model, "layer1.conv2.weight").layout().name(), "masked");
  }
}

// From one storage order of activations to the other.
TEST_F(ConvolutionRuns, ResumedInAnotherLayoutGoOnWithTheSameNumbers) {
  for (const auto& [from, to] : {std::pair{"csr", "masked"}, std::pair{"masked", "csr"}}) {
    const std::string whole = std::string("whole_") + from, moved = std::string("moved_") + from;
    ASSERT_EQ(train(layout(from), whole).code, 0);
    ASSERT_EQ(train_as(whole, moved, "step.between:7").code, kKill);
    const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir(moved), "--set",
                                    std::string("sparsity.layout=") + to});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const StateDict here = read_checkpoint(checkpoint(kSteps, moved)).state;
    const StateDict there = read_checkpoint(checkpoint(kSteps, whole)).state;
    const StateDict model = here.below("model");
    EXPECT_EQ(SavedParameter(model, "layer2.conv2.weight").layout().name(), to);
    for (const char* name : {"model/layer2.bn2/running_var", "model/linear.weight"}) {
      const std::vector<float> a = here.get<Tensor>(name).to_vector();
      const std::vector<float> b = there.get<Tensor>(name).to_vector();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        // Two steps of sums in another order.
        ASSERT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, std::abs(b[i]))) << name;
      }
    }
  }
}

TEST_F(ConvolutionRuns, AreVerifiedAgainstMasked) {
  const Ended ended = train({"--verify", "6", "--set", "sparsity.layout=csr"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("verified 6 steps against layout masked"));
}

}  // namespace
}  // namespace lacuna::convolution_runs_test
