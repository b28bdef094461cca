// A model of templates, residuals and parallel branches through the program: trained, killed and
// resumed, evaluated, its summary.
#include <gmock/gmock.h>

#include <string>

#include "framework/program/runs.h"

namespace lacuna::graph_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGraphRun = R"(
data: {type: glyphs, train_size: 100, test_size: 30, validation: 10}
model:
  init_fan_in: nonzeros
  define:
    block:
      arguments: {width: null, p: 0.2}
      layers:
        - type: residual
          shortcut: [{type: linear, name: downsample.0, out_features: $width, bias: false}]
          layers:
            - {type: linear, name: fc1, out_features: $(2 * width)}
            - relu
            - {type: dropout, p: $p}
            - {type: linear, name: fc2, out_features: $width}
        - relu
  layers:
    - flatten
    - {type: block, name: stage1, repeat: 2, width: 12, first: {p: 0.4}}
    - {type: block, name: stage2, repeat: 2, width: 6}
    - type: parallel
      layers: [{type: linear, name: head.a, out_features: 4}, {type: linear, name: head.b, out_features: 6}]
optimizer: {type: adam, lr: 0.01}
sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 4}}
train:
  epochs: 3
  batch_size: 8
  accumulate: 2
  threads: 1
  log_every: 3
  eval_every: 5
  checkpoint: {every: 4, keep_last: 2}
)";

class GraphRun : public RunFixture {
 protected:
  GraphRun() { write_text(config(), kGraphRun); }
};

TEST_F(GraphRun, ResumesBitForBit) {
  const Ended whole = train({}, "whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(train({}, "killed", {.fault = "step.between:7"}).code, -9);
  const Ended resumed = train({"--resume"}, "killed");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Checkpoint x = read_checkpoint(checkpoint(18, "whole"));
  const Checkpoint y = read_checkpoint(checkpoint(18, "killed"));
  EXPECT_THAT(differences(x.state, y.state), IsEmpty());
  EXPECT_EQ(timeless_events(run_dir("whole")), timeless_events(run_dir("killed")));
  EXPECT_TRUE(x.state.contains("model/stage2.0.downsample.0.weight/indptr") ||
              x.state.contains("model/stage2.0.downsample.0.weight"));
  EXPECT_FALSE(x.state.contains("model/stage2.1.downsample.0.weight"));
  EXPECT_TRUE(x.state.contains("model/stage1.0.dropout1/calls"));
}

TEST_F(GraphRun, TheSavedConfigurationIsTheCompactOneAndDoesTheSame) {
  ASSERT_EQ(train({}, "first").code, 0);
  const Config saved = load_yaml(run_dir("first") + "/config.yaml");
  EXPECT_EQ(saved.at("model").at("layers").items()[1].at("first").at("p").text(), "0.4");
  EXPECT_EQ(saved.at("model").at("define").at("block").at("arguments").at("p").text(), "0.2");
  const Ended again =
      run_lacuna({"train", run_dir("first") + "/config.yaml", "--run-dir", run_dir("again")});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(differences(read_checkpoint(checkpoint(18, "first")).state,
                          read_checkpoint(checkpoint(18, "again")).state),
              IsEmpty());
  const Ended evaluated = run_lacuna({"eval", run_dir("first"), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Config splits = parse_yaml(evaluated.out, "eval").at("splits");
  EXPECT_EQ(splits.items().back().at("loss").text(),
            summary(run_dir("first")).at("test_loss").text());
}

TEST_F(GraphRun, SummaryCountsFlopsAndNoNeurons) {
  const Ended ended = train();
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config report = summary(run_dir());
  // Stage 1: fc1 and fc2 of both blocks, the first block's shortcut; stage 2 alike; the heads.
  const int64_t first = 24 * 784;
  const int64_t others = 12 * 24 + 12 * 784 + 24 * 12 + 12 * 24 + 12 * 12 + 6 * 12 + 6 * 12 +
                         12 * 6 + 6 * 12 + 4 * 6 + 6 * 6;
  EXPECT_EQ(report.required<int64_t>("dense_inference_flops"), 2 * (first + others));
  EXPECT_EQ(report.required<int64_t>("dense_training_flops"), 4 * first + 6 * others);
  const auto flops = report.required<int64_t>("inference_flops");
  EXPECT_NEAR(static_cast<double>(flops), 0.2 * 2.0 * static_cast<double>(first + others), 20.0);
  EXPECT_NEAR(report.required<double>("training_flops"), 0.2 * (4.0 * first + 6.0 * others), 60.0);
  EXPECT_FALSE(report.has("neurons"));
}

TEST_F(GraphRun, ErrorsOfTheModelEndThePlanWithItsPosition) {
  const Ended ended = run_lacuna({"plan", config(), "--set", "model.layers.2.widht=3"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("model.layers.2.widht: the template 'block' has no argument "
                                   "'widht'; did you mean 'width'?"));
}

}  // namespace
}  // namespace lacuna::graph_test
