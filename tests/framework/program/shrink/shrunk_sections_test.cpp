// The configuration of a run that `lacuna shrink` made says what the smaller model is and does.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna::shrunk_sections_test {
namespace {

class ShrunkSections : public RunFixture {
 protected:
  Ended shrink(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"shrink", run_dir(), "--run-dir", run_dir("small")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  Config section(const char* name) const {
    return load_yaml(run_dir("small/config.yaml")).at(name);
  }
  // How much larger the exported weights of the queries are than the run's own.
  double exported_by(const std::string& name) const {
    const std::string file = folder_ / (name + ".safetensors");
    const Ended exported =
        run_lacuna({"export", run_dir(name), "--format", "safetensors", "--out", file});
    EXPECT_EQ(exported.code, 0) << exported.err;
    const LoadedRun own = load_run(run_dir(name));
    const ParameterPtr query = own.model->parameter("q.weight");
    const Tensor before = query->to_dense();
    load_weights(file, *own.model);
    return static_cast<double>(query->to_dense().data()[0] / before.data()[0]);
  }
};

// Whether the scale is in the weights does not depend on the model's size.
TEST_F(ShrunkSections, KeepTheScaleOfAttention) {
  folder_.write("text.txt", std::string(20, 'a') + "to be or not to be that is the question");
  write_text(config(), "data: {type: text, path: '" + (folder_ / "text.txt") +
                           "', tokenizer: characters, context: 8}\n" + R"(
model:
  attention_scale: 3.0
  layers:
    - {type: token_embedding, features: 8}
    - {type: parallel, layers: [{type: linear, name: q, out_features: 8}, {type: linear, out_features: 8}, {type: linear, out_features: 8}]}
    - {type: attention, heads: 2, causal: true}
    - {type: linear, name: fc, out_features: 12}
    - relu
    - {type: linear, name: out}
optimizer: {type: adam}
train: {steps: 2, batch_size: 2, threads: 1}
)");
  ASSERT_EQ(train().code, 0);
  const Ended shrunk = shrink({"--to", "flops=0.8", "--set", "shrink.layers=fc"});
  ASSERT_EQ(shrunk.code, 0) << shrunk.err;
  EXPECT_EQ(section("model").required<double>("attention_scale"), 3.0);
  EXPECT_NEAR(exported_by("run"), 6.0, 1e-5);  // 3 √4
  EXPECT_NEAR(exported_by("small"), 6.0, 1e-5);
}

TEST_F(ShrunkSections, SayThatNonzerosNoLongerMoveBetweenWeights) {
  for (const bool had_others : {true, false}) {
    const std::string filter = had_others ? "[fc1.weight, fc2.weight]" : "fc2.weight";
    for (const char* name : {"run", "small"}) std::filesystem::remove_all(run_dir(name));
    ASSERT_EQ(
        train({"--set",
               "model=[flatten, {type: linear, name: fc1, out_features: 16}, relu, {type: "
               "linear, name: fc2, out_features: 16}, relu, {type: linear, name: fc3, "
               "out_features: 10}]",
               "--set",
               "sparsity={algorithm: snfs, sparsity: 0.83, update: {freq: 2}, param_filter: " +
                   filter + "}"})
            .code,
        0);
    const Ended shrunk = shrink({"--to", "parameters=0.6"});
    ASSERT_EQ(shrunk.code, 0) << shrunk.err;
    const std::string words = "snfs no longer moves nonzeros between weights";
    EXPECT_EQ(shrunk.out.find(words) != std::string::npos, had_others) << shrunk.out;
    for (const Config& entry : section("sparsity").items()) {
      EXPECT_FALSE(entry.required<bool>("redistribute"));
    }
  }
}

}  // namespace
}  // namespace lacuna::shrunk_sections_test
