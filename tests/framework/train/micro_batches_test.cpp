// One batch, its micro-batches (train.accumulate) and its shards make one optimizer step, for every
// loss and option: the same weights, the same mean loss, the same right answers.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "temporary_folder.h"

namespace lacuna::micro_batches_test {
namespace {

// Classes 0 to 2, very unequal, so that batches weigh differently.
constexpr const char* kTable =
    "x,y,kind\n1,0.5,0\n-2,1,0\n0.3,-1,1\n2,2,0\n-1,0.2,0\n0.7,-0.4,2\n1.5,1,0\n-0.6,0.9,0\n"
    "0.1,0.1,1\n-1.2,-2,1\n0.9,1.3,0\n2.2,-0.7,2\n-0.5,0.6,0\n1.1,-1.6,1\n0.4,0.8,0\n-1.9,1.7,2\n";
constexpr const char* kText =
    "to be or not to be that is the question whether tis nobler in the mind to suffer the slings "
    "and arrows of outrageous fortune or to take arms against a sea of troubles and by opposing "
    "end them to die to sleep no more and by a sleep to say we end the heartache and the thousand "
    "natural shocks that flesh is heir to";

// As many as a batch, so that each step sees them all whatever their order.
constexpr const char* kSentences =
    "0 to be or not to be\n1 that is the question whether\n0 tis nobler\n1 in the mind to suffer "
    "the slings and arrows of outrageous fortune\n0 or to take arms against a sea of troubles\n"
    "1 and by opposing end them\n0 to die\n1 to sleep no more\n";

const std::string kClasses =
    "data: {type: csv, train: TABLE}\n"
    "model: [{type: linear, name: a, out_features: 6}, relu,"
    " {type: linear, name: fc, out_features: 3}]\n";
const std::string kValues =
    "data: {type: csv, train: TABLE, task: regression, label_column: 1}\n"
    "model: [{type: linear, name: fc, out_features: 1}]\n";
const std::string kDecision =
    "data: {type: csv, train: PAIRS}\n"
    "model: [{type: linear, name: fc, out_features: 1}]\n";
const std::string kSampled =
    "data: {type: csv, train: TABLE, sampling: balanced}\n"
    "model: [{type: linear, name: fc, out_features: 3}]\n";
const std::string kDigits =
    "data: {type: glyphs, train_size: 16, test_size: 8}\n"
    "model: [flatten, {type: linear, name: fc, out_features: 10}]\n";
const std::string kNextToken =
    "data: {type: text, path: TEXT, tokenizer: characters, context: 8}\n"
    "model: {type: gpt2, n_embd: 8, n_layer: 1, n_head: 2, n_positions: 8, embd_pdrop: 0,"
    " attn_pdrop: 0, resid_pdrop: 0}\n";
const std::string kHiddenTokens =
    "data: {type: text, path: TEXT, tokenizer: characters, context: 8, mask_token: '_',"
    " mask_fraction: 0.2}\n"
    "model: {type: bert, head: masked_lm, hidden_size: 8, num_hidden_layers: 1,"
    " num_attention_heads: 2, intermediate_size: 16, max_position_embeddings: 8,"
    " hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0, initializer_range: 0.3}\n";

// A batch is padded to its longest sentence, so that padding differs between the ways.
const std::string kHiddenWords =
    "data: {type: labelled_text, train: SENTENCES, tokenizer: words, max_length: 12,"
    " mask_fraction: 0.3}\n"
    "model: {type: bert, head: masked_lm, hidden_size: 8, num_hidden_layers: 1,"
    " num_attention_heads: 2, intermediate_size: 16, max_position_embeddings: 12,"
    " hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0, initializer_range: 0.3}\n";

struct Case {
  std::string name, network, loss;
};

std::string with_files(std::string text, const TemporaryFolder& folder) {
  for (const auto& [word, file] : {std::pair{"TABLE", "table.csv"},
                                   {"PAIRS", "pairs.csv"},
                                   {"TEXT", "text.txt"},
                                   {"SENTENCES", "sentences.txt"}}) {
    if (const size_t at = text.find(word); at != std::string::npos) {
      text.replace(at, std::string(word).size(), folder / file);
    }
  }
  return text;
}

std::unique_ptr<Experiment> build(const std::string& yaml, const std::string& train) {
  return build_experiment(parse_yaml(
      yaml + "optimizer: {type: sgd, lr: 0.5}\ntrain: {seed: 1, " + train + "}\n", "micro.yaml"));
}

struct Trained {
  std::vector<float> weights;
  TrainingSums sums;
};

// Three steps.
Trained train(const std::string& yaml, const std::string& train) {
  const auto e = build(yaml, "steps: 3, " + train);
  e->model->train();
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    trained.sums += run_batches(*e);
    e->optimizer->step();
    e->optimizer->zero_grad();
  }
  for (const ParameterPtr& p : e->model->parameters()) {
    for (const float value : p->values().to_vector()) trained.weights.push_back(value);
  }
  return trained;
}

class SmallFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("table.csv", kTable);
    folder_.write("pairs.csv", "x,kind\n1,0\n-2,1\n0.3,1\n2,0\n-1,0\n0.7,1\n1.5,0\n-0.6,1\n");
    folder_.write("text.txt", kText);
    folder_.write("sentences.txt", kSentences);
  }

  // A run whose model teaches.
  std::string teacher(const std::string& network) const {
    const auto e = build(network, "steps: 2, batch_size: 8");
    RunFolder folder = RunFolder::create(folder_ / "teacher", e->config.to_yaml());
    Trainer(*e, folder, ProgressStyle::Lines).run();
    return folder_ / "teacher";
  }

  TemporaryFolder folder_;
};

class LossesOfSentences : public SmallFiles {};

class MicroBatches : public SmallFiles, public testing::WithParamInterface<Case> {};

TEST_P(MicroBatches, AreOneBatch) {
  const std::string network = with_files(GetParam().network, folder_);
  std::string loss = GetParam().loss;
  if (const size_t at = loss.find("TEACHER"); at != std::string::npos) {
    loss.replace(at, 7, teacher(network));
  }
  const std::string yaml = network + "loss: " + loss + "\n";
  const Trained whole = train(yaml, "batch_size: 8");
  EXPECT_TRUE(std::isfinite(whole.sums.mean_loss()));
  EXPECT_GT(whole.sums.mean_loss(), 0.0);
  for (const char* way :
       {"batch_size: 4, accumulate: 2", "batch_size: 1, accumulate: 8", "batch_size: 8, shards: 4",
        "batch_size: 4, accumulate: 2, shards: 2", "batch_size: 2, accumulate: 4, shards: 2"}) {
    const Trained parts = train(yaml, way);
    EXPECT_NEAR(parts.sums.mean_loss(), whole.sums.mean_loss(), 2e-6) << way;
    EXPECT_EQ(parts.sums.correct, whole.sums.correct) << way;
    EXPECT_EQ(parts.sums.answers, whole.sums.answers) << way;
    EXPECT_EQ(parts.sums.examples, whole.sums.examples) << way;
    ASSERT_EQ(parts.weights.size(), whole.weights.size());
    double largest = 0.0;
    for (size_t i = 0; i < whole.weights.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(parts.weights[i]) -
                                           static_cast<double>(whole.weights[i])));
    }
    EXPECT_LE(largest, 1e-6) << way;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Losses, MicroBatches,
    testing::Values(
        Case{"cross_entropy", kClasses, "cross_entropy"},
        Case{"label_smoothing", kClasses, "{type: cross_entropy, label_smoothing: 0.2}"},
        Case{"class_weights", kClasses, "{type: cross_entropy, class_weights: [1, 7, 0.25]}"},
        Case{"balanced_class_weights", kClasses, "{type: cross_entropy, class_weights: balanced}"},
        Case{"balanced_sampling", kSampled, "cross_entropy"},
        Case{"weight_of_zero", kClasses, "{type: cross_entropy, class_weights: [0, 0, 1]}"},
        Case{"weight_of_zero_smoothed", kClasses,
             "{type: cross_entropy, class_weights: [0, 0, 1], label_smoothing: 0.3}"},
        Case{"ignore_index", kClasses, "{type: cross_entropy, ignore_index: 0}"},
        Case{"all_options", kClasses,
             "{type: cross_entropy, ignore_index: 2, class_weights: [1, 5, 2],"
             " label_smoothing: 0.1}"},
        Case{"mse", kValues, "mse"},
        Case{"binary_cross_entropy", kDecision, "binary_cross_entropy"},
        Case{"pos_weight", kDecision, "{type: binary_cross_entropy, pos_weight: 3}"},
        Case{"balanced_pos_weight", kDecision,
             "{type: binary_cross_entropy, pos_weight: balanced}"},
        Case{"distillation", kDigits, "{type: distillation, teacher: TEACHER, weight: 0.3}"},
        Case{"distillation_class_weights", kClasses,
             "{type: distillation, teacher: TEACHER, weight: 0.6, class_weights: [1, 9, 3]}"},
        Case{"distillation_weight_of_zero_smoothed", kClasses,
             "{type: distillation, teacher: TEACHER, weight: 0.6, class_weights: [0, 4, 0],"
             " label_smoothing: 0.2}"},
        Case{"distillation_ignore_index", kClasses,
             "{type: distillation, teacher: TEACHER, ignore_index: 0}"},
        Case{"next_token", kNextToken, "cross_entropy"},
        Case{"next_token_ignore_index", kNextToken, "{type: cross_entropy, ignore_index: 1}"},
        Case{"masked_language_model", kHiddenTokens, "cross_entropy"},
        Case{"masked_language_model_smoothed", kHiddenTokens,
             "{type: cross_entropy, label_smoothing: 0.1}"},
        Case{"masked_language_model_distillation", kHiddenTokens,
             "{type: distillation, teacher: TEACHER, weight: 0.4}"},
        Case{"masked_sentences", kHiddenWords, "cross_entropy"},
        Case{"masked_sentences_distillation", kHiddenWords,
             "{type: distillation, teacher: TEACHER, weight: 0.6, temperature: 3}"}),
    [](const auto& tested) { return tested.param.name; });

// Each sentence with `more` tokens of padding behind it.
Batch padded(const Batch& batch, int64_t more) {
  const int64_t length = batch.labels.shape()[1];
  const auto widened = [&](const IndexTensor& tokens, int64_t filler) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < batch.size; ++i) {
      const auto row =
          tokens.values().subspan(static_cast<size_t>(i * length), static_cast<size_t>(length));
      values.insert(values.end(), row.begin(), row.end());
      values.insert(values.end(), static_cast<size_t>(more), filler);
    }
    return IndexTensor(Shape{batch.size, length + more}, std::move(values));
  };
  Batch wide = batch;
  wide.labels = widened(batch.labels, kIgnoredLabel);
  for (auto& [name, tokens] : wide.named) tokens = widened(tokens, 0);
  return wide;
}

TEST_F(LossesOfSentences, DoNotDependOnPadding) {
  const std::string network = with_files(kHiddenWords, folder_);
  const std::string teaching =
      "loss: {type: distillation, weight: 0.6, teacher: " + teacher(network) + "}\n";
  for (const std::string& loss : {std::string("loss: cross_entropy\n"), teaching}) {
    SCOPED_TRACE(loss);
    const auto e = build(network + loss, "steps: 1, batch_size: 8");
    const std::vector<int64_t> some{0, 2, 6};
    const Batch tight = e->data.train->gather(some);
    std::vector<LossSums> sums;
    std::vector<std::vector<float>> gradients;
    for (const Batch& batch : {tight, padded(tight, 3)}) {
      const Tensor taught =
          e->teacher == nullptr ? Tensor() : run_model(*e->teacher, batch).value();
      const LossPart part =
          e->loss.part_of(e->loss.weights_of(batch), run_model(*e->model, batch), taught, batch);
      backward(part.loss);
      sums.push_back(part.sums);
      gradients.emplace_back();
      for (const ParameterPtr& p : e->model->parameters()) {
        for (const float value : p->gradient().to_vector()) gradients.back().push_back(value);
      }
      e->optimizer->zero_grad();
    }
    EXPECT_EQ(sums[0].weights.rows, sums[1].weights.rows);
    EXPECT_NEAR(sums[0].teacher, sums[1].teacher, 1e-6);
    EXPECT_NEAR(sums[0].mean(), sums[1].mean(), 1e-6);
    EXPECT_THAT(gradients[1], testing::Pointwise(testing::FloatNear(1e-6f), gradients[0]));
  }
}

}  // namespace
}  // namespace lacuna::micro_batches_test
