// Runs that train the scales of their int8 grids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/program/quantize/quantized_runs.h"

namespace lacuna::learned_scales_runs_test {
namespace {

using testing::HasSubstr;

constexpr const char* kNetwork = R"(
data: {type: colour_glyphs, train_size: 200, test_size: 100, validation: 40}
model:
  - {type: conv2d, name: first, out_channels: 8, kernel: 3, padding: 1, stride: 2}
  - relu
  - {type: conv2d, name: second, out_channels: 8, kernel: 3, padding: 1, stride: 2}
  - relu
  - flatten
  - {type: linear, name: fc1, out_features: 24}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.003}
train: {epochs: 3, batch_size: 20, threads: 1}
)";

class LearnedScalesRuns : public QuantizedRunFixture {
 protected:
  LearnedScalesRuns() { write_text(config(), kNetwork); }
  Ended learn(const std::string& name, const std::vector<std::string>& more = {},
              const std::string& keys = "") const {
    std::vector<std::string> all{
        "--set",
        "quantize={algorithm: qat, scales: learned, calibration: 64, param_filter: "
        "[second.weight, fc1.weight, fc2.weight]" +
            keys + "}"};
    all.insert(all.end(), more.begin(), more.end());
    return train(all, name);
  }
  StateDict state(const std::string& name) const {
    return find_checkpoint(run_dir(name)).read().state;
  }
};

TEST_F(LearnedScalesRuns, QuantizeTakesTheScalesThatWereLearned) {
  const Ended trained = learn("qat");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended ended =
      run_lacuna({"quantize", run_dir("qat"), "--run-dir", run_dir("int8"), "--last"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const StateDict learned = state("qat").below("qat"), taken = state("int8").below("quantized");
  for (const std::string weight : {"second.weight", "fc1.weight", "fc2.weight"}) {
    const std::vector<float> scales = learned.get<Tensor>(weight + "/scales").to_vector(),
                             found = learned.get<Tensor>(weight + "/found_scales").to_vector();
    EXPECT_EQ(taken.get<Tensor>(weight + "/scales").to_vector(), scales) << weight;
    EXPECT_NE(scales, found) << weight;
    EXPECT_EQ(taken.number(weight + "/input_scale"), learned.number(weight + "/input_scale"));
    EXPECT_NE(learned.number(weight + "/input_scale"),
              learned.number(weight + "/found_input_scale"));
  }
  const double on_grids = summary(run_dir("qat")).required<double>("test_loss");
  EXPECT_NEAR(loss(report("int8"), "int8"), on_grids, 2e-3 * on_grids);
}

TEST_F(LearnedScalesRuns, AreTheSameForAnyNumberOfThreads) {
  ASSERT_EQ(learn("one").code, 0);
  ASSERT_EQ(learn("three", {"--threads", "3"}).code, 0);
  EXPECT_THAT(differences(state("one").below("model"), state("three").below("model")),
              testing::IsEmpty());
  EXPECT_THAT(differences(state("one").below("qat"), state("three").below("qat")),
              testing::IsEmpty());
}

// Their optimizer follows the run's learning rate, whenever it begins.
TEST_F(LearnedScalesRuns, BeginAtTheRunsStep) {
  ASSERT_EQ(learn("late",
                  {"--set",
                   "optimizer.lr={type: cosine_once, init: 0.003, minimum: 0.0, "
                   "half_period: 30}"},
                  ", start_epoch: 1")
                .code,
            0);
  EXPECT_EQ(state("late").count("qat/optimizer/step"), 24);
  EXPECT_EQ(state("late").count("qat/optimizer/fc1.weight.scale/step"), 16);
}

TEST_F(LearnedScalesRuns, RefuseKeysWithoutAMeaning) {
  const Ended frozen = learn("run", {}, ", freeze_after: 1");
  EXPECT_EQ(frozen.code, 2);
  EXPECT_THAT(frozen.err, HasSubstr("learned scales are trained to the end of the run"));
  const Ended other = train({"--set", "quantize={algorithm: gptq, scales: learned}"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("unknown key 'scales'"));
  const Ended through = learn("run", {"--set", "sparsity={algorithm: ste, sparsity: 0.5}"});
  EXPECT_EQ(through.code, 2);
  EXPECT_THAT(through.err, HasSubstr("which ste and semi_sparse do not have"));
  const Ended name = learn("run", {"--set", "quantize.scales=lsq"});
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.err, HasSubstr("expected observed or learned"));
}

}  // namespace
}  // namespace lacuna::learned_scales_runs_test
