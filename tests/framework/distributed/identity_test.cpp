// Any number of processes trains to the same bits.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/distributed/job.h"
#include "framework/train/tiny_convolution.h"
#include "framework/train/widened_mlp.h"

namespace lacuna::identity_test {
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

// Scales of weights and of inputs get gradients of all shards.
const std::string kLearnedScales = "quantize: {algorithm: qat, scales: learned, calibration: 32}\n";

struct Case {
  const char* name;
  std::string config;
  int64_t steps;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::string mlp(const std::string& sparsity) {
  return kMlp + kMlpRun + "sparsity: {param_filter: [fc1.weight, fc2.weight], " + sparsity + "}\n";
}
// Trained by Adam, with ages of grown weights.
std::string aged_mlp(const std::string& sparsity) {
  std::string text = mlp(sparsity);
  const std::string key = "optimizer: ";
  const size_t begin = text.find(key);
  text.replace(begin, text.find('\n', begin) - begin,
               key + "{type: adam, lr: 0.003, regrown: {age: own, warmup: 3}}");
  return text;
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
std::string gpt(const std::string& sparsity) {
  return kGpt + "sparsity: {param_filter: [\"*attn.c_attn.weight\", \"*mlp*.weight\"], " +
         sparsity + "}\n";
}

// Sentences of 1 to 11 words: batches are of similar lengths, and padded. The last one of an epoch
// (96 in batches of 10) has fewer examples than there are shards.
const std::string kBertSizes =
    "hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 32, "
    "max_position_embeddings: 12";
const std::string kBert = R"(
data: {type: labelled_text, train: SENTENCES, tokenizer: words, max_length: 12, validation: 24}
model: {type: bert, pooling: mean, )" +
                          kBertSizes + R"(}
optimizer: {type: adamw, lr: 0.003, clip_norm: 1.0}
train: {steps: 12, batch_size: 10, log_every: 1, eval_every: 6, eval_batch_size: 7}
)";
const std::string kBalanced = R"(
data: {type: labelled_text, train: SENTENCES, tokenizer: words, max_length: 12, validation: 24,
       sampling: balanced}
model: {type: bert, pooling: mean, )" +
                              kBertSizes + R"(}
optimizer: {type: adamw, lr: 0.003}
train: {steps: 12, batch_size: 10, log_every: 1}
)";
const std::string kMasking = R"(
optimizer: {type: adamw, lr: 0.003}
train: {steps: 5, batch_size: 9, log_every: 1}
)";
// Hidden words of windows, and of sentences, where a shard may have fewer of them than another.
const std::string kMaskedText = R"(
data: {type: text, path: TEXT, tokenizer: words, context: 12, mask_fraction: 0.15, validation: 0.2}
model: {type: bert, head: masked_lm, )" +
                                kBertSizes + "}" + kMasking;
const std::string kMaskedSentences = R"(
data: {type: labelled_text, train: SENTENCES, tokenizer: words, max_length: 12,
       mask_fraction: 0.15, validation: 20}
model: {type: bert, head: masked_lm, )" +
                                     kBertSizes + "}" + kMasking;
std::string of_bert(const std::string& config, const std::string& sparsity) {
  return config +
         "sparsity: {param_filter: [\"bert.encoder.*.dense.weight\", "
         "\"bert.encoder.*.self.*.weight\"], " +
         sparsity + "}\n";
}

const std::string kVit = R"(
data: {type: colour_glyphs, train_size: 72, test_size: 20, augment: {crop: 2, flip: true, mixup: 0.2}}
model: {type: vit, patch_size: 8, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2,
        intermediate_size: 32, hidden_dropout_prob: 0.1}
optimizer: {type: adamw, lr: 0.003, clip_norm: 1.0}
train: {steps: 5, batch_size: 19, log_every: 1}
)";
std::string vit(const std::string& sparsity) {
  return kVit +
         "sparsity: {param_filter: [\"vit.encoder.*.dense.weight\", "
         "\"vit.encoder.*.attention.attention.*.weight\"], " +
         sparsity + "}\n";
}

// Rows of an embedding, of which each shard uses others.
const std::string kRows = R"(
data: {type: text, tokenizer: words, context: 5, path: TEXT}
model:
  - {type: token_embedding, name: wte, features: 8, sparse_gradient: true}
  - relu
  - {type: linear, name: head}
optimizer: {type: adamw, lr: 0.01, clip_norm: 0.5}
train: {steps: 6, batch_size: 17, accumulate: 2, ema: 0.9, log_every: 1}
)";
const std::string kTied = R"(
data: {type: text, tokenizer: words, context: 5, path: TEXT}
model:
  - {type: token_embedding, name: wte, features: 16}
  - {type: linear, name: fc, out_features: 16}
  - relu
  - {type: linear, name: head, tied_to: wte}
optimizer: {type: adamw, lr: 0.01, clip_norm: 0.5}
train: {steps: 6, batch_size: 17, log_every: 1}
sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 2}, param_filter: [wte.weight], layout: csr}
)";

const std::string kWidened =
    "data: {type: glyphs, train_size: 216, test_size: 40}" + std::string(kWidenedMlp) + kMlpRun;

const std::string kParametrization =
    "parametrization: {type: sparse_mup, base_width: 8, density: present}\n";
const std::string kGmp =
    "algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0.0, final: 0.8, start: "
    "0, end: 4}";
const std::string kTwoOfFour = "algorithm: static, pattern: {type: nm, n: 2, m: 4}";
const std::string kRigLTwoOfFour =
    "algorithm: rigl, update: {freq: 2}, pattern: {type: nm, n: 2, m: 4}";
const std::string kBlock =
    "algorithm: rigl, sparsity: 0.75, update: {freq: 2}, pattern: {type: block, rows: 4, cols: 4}";

class Identity : public JobFixture, public testing::WithParamInterface<Case> {
 protected:
  Identity() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "to be or not to be: that is question " + std::to_string(i * 7919 % 97) + "\n";
    const std::vector<std::string> words = {"to", "be", "or", "not", "is", "that", "question"};
    std::string sentences;
    for (size_t i = 0; i < 120; ++i) {
      sentences += std::to_string(i % 3 == 0);
      for (size_t w = 0; w < 1 + i * 7 % 11; ++w) sentences += " " + words[(i * i + w) % 7];
      sentences += "\n";
    }
    std::string whole = GetParam().config;
    replace(whole, "TEXT", "text.txt", text);
    replace(whole, "SENTENCES", "sentences.txt", sentences);
    write_text(config(), whole);
  }

 private:
  void replace(std::string& whole, const std::string& word, const char* file,
               const std::string& content) const {
    const size_t place = whole.find(word);
    if (place != std::string::npos) whole.replace(place, word.size(), folder_.write(file, content));
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

// Then a process's shards are several parts of the tree, and numbers go to all to be joined.
class OtherNumbers : public Identity {};

TEST_P(OtherNumbers, OfOneThreeFourAndSixProcesses) {
  const std::vector<std::string> shards{"--set", "train.shards=12"};
  const Ended alone = run(0, "alone", shards);
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const int processes : {3, 4, 6}) {
    const std::string name = std::to_string(processes);
    const Ended job = run(processes, name, shards);
    ASSERT_EQ(job.code, 0) << processes << " processes: " << job.err;
    EXPECT_THAT(different(GetParam().steps, "alone", name), testing::IsEmpty())
        << processes << " processes";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, OtherNumbers,
    testing::Values(Case{"convolution_rigl",
                         convolution("algorithm: rigl, sparsity: 0.9, update: {freq: 2}"), 5},
                    Case{"transformer_block", gpt(kBlock), 4}),
    [](const testing::TestParamInfo<Case>& given) { return std::string(given.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Models, Identity,
    testing::Values(
        Case{"mlp_dense", kMlp + kMlpRun, 9},
        Case{"mlp_static", mlp("algorithm: static, sparsity: 0.9"), 9},
        Case{"mlp_masked", mlp("algorithm: static, sparsity: 0.5, layout: masked"), 9},
        Case{"mlp_set", mlp("algorithm: set, sparsity: 0.9, update: {freq: 2}"), 9},
        Case{"mlp_rigl", mlp("algorithm: rigl, sparsity: 0.9, update: {freq: 2}"), 9},
        Case{"mlp_dynamic",
             aged_mlp("algorithm: dynamic, grow: {mixed: 0.5}, sparsity: 0.9, update: {freq: 2}"),
             9},
        Case{"mlp_parametrized_set",
             aged_mlp("algorithm: set, sparsity: 0.9, update: {freq: 2}") + kParametrization, 9},
        Case{"gpt_parametrized_gmp", gpt(kGmp) + kParametrization, 4},
        Case{"mlp_srigl",
             aged_mlp("algorithm: srigl, sparsity: 0.9, min_salient: 0.9, update: {freq: 2}"), 9},
        Case{"mlp_gmp",
             mlp("algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0.0, "
                 "final: 0.9, start: 0, end: 8}"),
             9},
        Case{"mlp_structured",
             kMlp + kMlpRun +
                 "sparsity: {algorithm: structured, criterion: saliency, update: {freq: 2}, "
                 "sparsity: {type: polynomial, init: 0.0, final: 0.6, start: 0, end: 8}}\n",
             9},
        Case{"mlp_structured_by_error",
             kMlp + kMlpRun +
                 "sparsity: {algorithm: structured, criterion: error, calibration: 50, update: "
                 "{freq: 2}, sparsity: {type: polynomial, init: 0.0, final: 0.6, start: 0, end: "
                 "8}}\n",
             9},
        Case{"mlp_2_4", mlp("algorithm: static, pattern: {type: nm, n: 2, m: 4}"), 9},
        Case{"mlp_semi_sparse", mlp("algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}"), 9},
        Case{"mlp_block",
             mlp("algorithm: rigl, sparsity: 0.75, update: {freq: 3}, pattern: {type: block, "
                 "rows: 4, cols: 4}"),
             9},
        Case{"mlp_learned_scales",
             mlp("algorithm: set, sparsity: 0.9, update: {freq: 2}") + kLearnedScales, 9},
        Case{"convolution_learned_scales", kConvolution + kConvolutionRun + kLearnedScales, 5},
        Case{"convolution_dense", kConvolution + kConvolutionRun, 5},
        Case{"convolution_static", convolution("algorithm: static, sparsity: 0.95"), 5},
        Case{"convolution_rigl", convolution("algorithm: rigl, sparsity: 0.95, update: {freq: 2}"),
             5},
        Case{"convolution_set", convolution("algorithm: set, sparsity: 0.9, update: {freq: 2}"), 5},
        Case{"convolution_gmp", convolution(kGmp), 5},
        Case{"convolution_2_4", convolution(kRigLTwoOfFour), 5},
        Case{"convolution_block", convolution(kBlock), 5}, Case{"transformer_dense", kGpt, 4},
        Case{"transformer_static", gpt("algorithm: static, sparsity: 0.9"), 4},
        Case{"transformer_set", gpt("algorithm: set, sparsity: 0.9, update: {freq: 2}"), 4},
        Case{"transformer_rigl", gpt("algorithm: rigl, sparsity: 0.9, update: {freq: 2}"), 4},
        Case{"transformer_gmp", gpt(kGmp), 4}, Case{"transformer_2_4", gpt(kTwoOfFour), 4},
        Case{"transformer_block", gpt(kBlock), 4}, Case{"bert_dense", kBert, 12},
        Case{"bert_balanced", kBalanced, 12},
        Case{"bert_set", of_bert(kBert, "algorithm: set, sparsity: 0.8, update: {freq: 2}"), 12},
        Case{"bert_rigl", of_bert(kBert, "algorithm: rigl, sparsity: 0.8, update: {freq: 1}"), 12},
        Case{"masked_text_rigl",
             of_bert(kMaskedText, "algorithm: rigl, sparsity: 0.8, update: {freq: 2}"), 5},
        Case{"masked_sentences_gmp", of_bert(kMaskedSentences, kGmp), 5},
        Case{"vit_dense", kVit, 5}, Case{"vit_static", vit("algorithm: static, sparsity: 0.8"), 5},
        Case{"vit_rigl", vit("algorithm: rigl, sparsity: 0.8, update: {freq: 2}"), 5},
        Case{"vit_semi_sparse", vit("algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}"), 5},
        Case{"vit_block", vit(kBlock), 5}, Case{"rows", kRows, 6},
        Case{"rows_rigl",
             kRows + "sparsity: {algorithm: rigl, sparsity: 0.5, update: {freq: 2}, "
                     "param_filter: [wte.weight]}\n",
             6},
        Case{"tied_rigl", kTied, 6}, Case{"widened_set", kWidened, 9}),
    [](const testing::TestParamInfo<Case>& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace lacuna::identity_test
