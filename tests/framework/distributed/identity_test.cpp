// Any number of processes trains to the same bits.
#include <gmock/gmock.h>

#include "framework/distributed/job.h"
#include "framework/train/tiny_convolution.h"

namespace lacuna {
namespace {

const std::string kMlp = R"(
data: {type: glyphs, train_size: 100, test_size: 30, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 32}
  - relu
  - {type: dropout, p: 0.3}
  - {type: linear, name: fc2, out_features: 16}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.01, weight_decay: 0.001, clip_norm: 1.0}
)";
const std::string kMlpRun = "train: {steps: 9, batch_size: 24, log_every: 1, eval_every: 3}\n";

const std::string kConvolution =
    "data: {type: colour_glyphs, train_size: 72, test_size: 20}\n"
    "model:" +
    kTinyConvolutionModel + R"(
optimizer: {type: sgd, lr: 0.05, momentum: 0.9}
)";
const std::string kConvolutionRun = "train: {steps: 5, batch_size: 19, log_every: 1}\n";

struct Case {
  const char* name;
  std::string config;
  int64_t steps;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::string mlp(const std::string& sparsity) {
  return kMlp + kMlpRun + "sparsity: {param_filter: [fc1.weight, fc2.weight], " + sparsity + "}\n";
}
std::string convolution(const std::string& sparsity) {
  return kConvolution + kConvolutionRun + "sparsity: {param_filter: [\"" + kTinyConvolutionFilter +
         "\"], " + sparsity + "}\n";
}

const std::string kGpt = R"(
data: {type: text, tokenizer: characters, context: 16, validation: 0.1, path: TEXT}
model: {type: gpt2, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 16, attn_pdrop: 0.1}
optimizer: {type: adamw, lr: 0.003, clip_norm: 1.0}
train: {steps: 4, batch_size: 9, accumulate: 2, ema: 0.9, log_every: 1}
)";

class Identity : public JobFixture, public testing::WithParamInterface<Case> {
 protected:
  Identity() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "to be or not to be: that is question " + std::to_string(i * 7919 % 97) + "\n";
    std::string whole = GetParam().config;
    if (const size_t place = whole.find("TEXT"); place != std::string::npos) {
      whole.replace(place, 4, folder_.write("text.txt", text));
    }
    write_text(config(), whole);
  }
};

TEST_P(Identity, OfOneTwoAndFourProcesses) {
  const int64_t steps = GetParam().steps;
  const Ended alone = run(0, "alone");
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const int processes : {1, 2, 4}) {
    const std::string name = std::to_string(processes);
    const Ended job = run(processes, name);
    ASSERT_EQ(job.code, 0) << processes << " processes: " << job.err;
    EXPECT_THAT(different(steps, "alone", name), testing::IsEmpty()) << processes << " processes";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Identity,
    testing::Values(
        Case{"mlp_dense", kMlp + kMlpRun, 9},
        Case{"mlp_static", mlp("algorithm: static, sparsity: 0.9"), 9},
        Case{"mlp_masked", mlp("algorithm: static, sparsity: 0.5, layout: masked"), 9},
        Case{"mlp_set", mlp("algorithm: set, sparsity: 0.9, update: {freq: 2}"), 9},
        Case{"mlp_rigl", mlp("algorithm: rigl, sparsity: 0.9, update: {freq: 2}"), 9},
        Case{"mlp_gmp",
             mlp("algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0.0, "
                 "final: 0.9, start: 0, end: 8}"),
             9},
        Case{"mlp_2_4", mlp("algorithm: static, pattern: {type: nm, n: 2, m: 4}"), 9},
        Case{"mlp_semi_sparse", mlp("algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}"), 9},
        Case{"mlp_block",
             mlp("algorithm: rigl, sparsity: 0.75, update: {freq: 3}, pattern: {type: block, "
                 "rows: 4, cols: 4}"),
             9},
        Case{"convolution_dense", kConvolution + kConvolutionRun, 5},
        Case{"convolution_static", convolution("algorithm: static, sparsity: 0.95"), 5},
        Case{"convolution_rigl", convolution("algorithm: rigl, sparsity: 0.95, update: {freq: 2}"),
             5},
        Case{"transformer_dense", kGpt, 4},
        Case{"transformer_rigl",
             kGpt + "sparsity: {algorithm: rigl, sparsity: 0.9, update: {freq: 2}, "
                    "param_filter: [\"*attn.c_attn.weight\", \"*mlp*.weight\"]}\n",
             4}),
    [](const testing::TestParamInfo<Case>& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace lacuna
