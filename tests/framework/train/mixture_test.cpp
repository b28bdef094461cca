// Training on mixtures of examples: what their loss and right answers are, and what goes with them.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "throws.h"

namespace lacuna::mixture_test {
namespace {

std::unique_ptr<Experiment> build(const std::string& augment, const std::string& more = "") {
  return build_experiment(
      parse_yaml("data: {type: colour_glyphs, train_size: 64, test_size: 16, augment: {" + augment +
                     "}}\nmodel: [flatten, {type: linear, out_features: 10}]\n"
                     "optimizer: {type: sgd, lr: 0.01}\ntrain: {batch_size: 16, steps: 4}\n" +
                     more,
                 "e.yaml"));
}

Batch mixture() {
  Batch batch;
  batch.size = 2;
  batch.inputs = Tensor::zeros(Shape{2, 1});
  batch.labels = IndexTensor(Shape{2}, {0, 1});
  batch.other_labels = IndexTensor(Shape{2}, {1, 1});
  batch.own_shares = {0.75f, 0.5f};
  return batch;
}

TEST(Mixtures, HaveTheLossOfBothLabels) {
  const auto e = build("mixup: 0.2");
  std::vector<float> values(20, -30.0f);
  values[0] = std::log(0.5f), values[1] = std::log(0.5f);    // of the first one half each
  values[11] = std::log(0.8f), values[12] = std::log(0.2f);  // the second's label 0.8
  const Variable logits(Tensor::from(Shape{2, 10}, values));
  const float loss = e->loss(logits, mixture()).value().item();
  EXPECT_NEAR(loss, -(std::log(0.5) + std::log(0.8)) / 2.0, 1e-5);
}

TEST(Mixtures, AreToldByTheirOwnLabel) {
  const auto e = build("mixup: 0.2");
  std::vector<float> values(20, 0.0f);
  values[0] = 1.0f;  // the first one's own, the second one's first among equals
  EXPECT_EQ(e->loss.count_correct(Tensor::from(Shape{2, 10}, values), mixture()), 1);
}

TEST(Mixtures, GoWithTheOtherChangesAndWithSmoothing) {
  const auto e = build("crop: 2, flip: true, cutout: 4, mixup: 0.4, rand_augment: {operations: 2}",
                       "loss: {type: cross_entropy, label_smoothing: 0.1}\n");
  const TrainingSums sums = run_batches(*e);
  EXPECT_EQ(sums.examples, 16);
  EXPECT_EQ(sums.answers, 16);
  EXPECT_TRUE(std::isfinite(sums.mean_loss()));
  // Evaluation is of the images themselves.
  const auto plain = build("crop: 0", "loss: {type: cross_entropy, label_smoothing: 0.1}\n");
  EXPECT_EQ(evaluate(*e->model, e->loss, *e->data.test, 16).loss,
            evaluate(*plain->model, plain->loss, *plain->data.test, 16).loss);
}

TEST(Mixtures, HaveNoWeightOfAClass) {
  expect_throws<ConfigError>(
      [] {
        build("mixup: 0.2",
              "loss: {type: cross_entropy, class_weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]}\n");
      },
      "mixtures of two classes cannot be weighted by class; leave out mixup or loss.class_weights");
}

}  // namespace
}  // namespace lacuna::mixture_test
