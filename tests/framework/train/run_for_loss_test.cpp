// The head of a masked language model computes outputs of the hidden tokens alone: loss, accuracy
// and gradients are those of the whole computation.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "temporary_folder.h"

namespace lacuna::run_for_loss_test {
namespace {

constexpr const char* kSizes =
    "head: masked_lm, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, "
    "intermediate_size: 24, max_position_embeddings: 12, hidden_dropout_prob: 0, "
    "attention_probs_dropout_prob: 0, initializer_range: 0.3}\n";
constexpr const char* kSparse =
    "sparsity: {sparsity: 0.5, layout: csr, param_filter: ['*.dense.weight', '*decoder.weight']}\n";

struct Case {
  std::string name, model, rest;
};

class RunForLoss : public testing::TestWithParam<Case> {
 protected:
  RunForLoss() {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += i % 3 == 0 ? "1 to be or not to be\n" : "0 that is the question or is it not so\n";
    }
    folder_.write("text.txt", text);
  }
  std::unique_ptr<Experiment> build() const {
    return build_experiment(parse_yaml(
        "data: {type: labelled_text, train: " + folder_ / "text.txt" +
            ", max_length: 12, mask_fraction: 0.3, validation: 8}\n" + GetParam().model +
            GetParam().rest + "optimizer: {type: sgd, lr: 0.1}\ntrain: {batch_size: 6, steps: 4}\n",
        "e.yaml"));
  }

  TemporaryFolder folder_;
};

std::vector<std::vector<float>> gradients(const Experiment& e) {
  std::vector<std::vector<float>> all;
  for (const ParameterPtr& p : e.model->parameters()) {
    all.push_back(p->gradient().defined() ? p->gradient().to_vector() : std::vector<float>());
  }
  return all;
}

TEST_P(RunForLoss, IsTheWholeComputation) {
  const auto e = build();
  for (int step = 0; step < 3; ++step) {
    const Batch batch = e->loader->next();
    const auto told = static_cast<int64_t>(e->loss.answers_of(batch));
    std::vector<double> losses;
    std::vector<int64_t> correct;
    std::vector<std::vector<std::vector<float>>> all;
    for (const bool whole : {true, false}) {
      const Variable output = whole ? run_model(*e->model, batch) : run_for_loss(*e->model, batch);
      if (whole) {
        EXPECT_EQ(output.shape().rank(), 3);
      } else {
        EXPECT_EQ(output.shape(), (Shape{told, e->loss.outputs()}));
      }
      const Variable loss = e->loss(output, batch);
      losses.push_back(loss.value().item());
      correct.push_back(e->loss.count_correct(output.value(), batch));
      backward(loss);
      all.push_back(gradients(*e));
      e->optimizer->zero_grad();
    }
    EXPECT_LT(told, batch.labels.numel() / 2);
    EXPECT_NEAR(losses[0], losses[1], 1e-6 * losses[0]);
    EXPECT_EQ(correct[0], correct[1]);
    ASSERT_EQ(all[0].size(), all[1].size());
    for (size_t p = 0; p < all[0].size(); ++p) {
      ASSERT_EQ(all[0][p].size(), all[1][p].size());
      for (size_t i = 0; i < all[0][p].size(); ++i) {
        // The same sums without their zeros, in another order.
        ASSERT_NEAR(all[0][p][i], all[1][p][i], 2e-6)
            << e->model->parameters()[p]->name() << " " << i;
      }
    }
  }
}

TEST_P(RunForLoss, EvaluatesAsTheWholeComputation) {
  const auto e = build();
  const Evaluation found = evaluate(*e->model, e->loss, *e->data.validation, 3);
  const LossFunction loss = e->loss.for_evaluation();
  double sum = 0.0, weights = 0.0;
  int64_t correct = 0;
  e->model->eval();
  for_each_batch(*e->data.validation, 3, [&](const Batch& batch) {
    const NoGrad no_grad;
    const Variable output = run_model(*e->model, batch);
    const double weight = loss.weight_of(batch);
    sum += weight * static_cast<double>(loss(output, batch).value().item());
    weights += weight;
    correct += loss.count_correct(output.value(), batch);
  });
  EXPECT_NEAR(found.loss, sum / weights, 1e-6 * found.loss);
  EXPECT_DOUBLE_EQ(found.accuracy, static_cast<double>(correct) / weights);
  EXPECT_DOUBLE_EQ(found.perplexity, std::exp(found.loss));
}

INSTANTIATE_TEST_SUITE_P(
    Models, RunForLoss,
    testing::Values(
        Case{"bert", std::string("model: {type: bert, ") + kSizes, ""},
        Case{"untied", std::string("model: {type: bert, tie_word_embeddings: false, ") + kSizes,
             ""},
        Case{"sparse", std::string("model: {type: bert, tie_word_embeddings: false, ") + kSizes,
             kSparse},
        Case{"smoothed", std::string("model: {type: bert, ") + kSizes,
             "loss: {type: cross_entropy, label_smoothing: 0.1}\n"},
        Case{"distilbert",
             "model: {type: distilbert, head: masked_lm, dim: 16, n_layers: 1, n_heads: 2, "
             "hidden_dim: 24, max_position_embeddings: 12, dropout: 0, attention_dropout: 0, "
             "initializer_range: 0.3}\n",
             ""}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lacuna::run_for_loss_test
