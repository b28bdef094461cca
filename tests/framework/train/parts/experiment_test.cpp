// What build_experiment makes of the sections together.
#include "lacuna/framework/train/parts/experiment.hpp"
#include "framework/train/training_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "throws.h"

namespace lacuna::experiment_test {
namespace {

std::unique_ptr<Experiment> build(const std::string& model, const std::string& more = "") {
  return build_experiment(
      parse_yaml("data: {type: glyphs, train_size: 40, test_size: 10}\nmodel: " + model +
                     "\noptimizer: {type: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1}\n"
                     "train: {batch_size: 20, threads: 1}\n" +
                     more,
                 "e.yaml"));
}

constexpr const char* kLayers =
    "[flatten, {type: linear, name: fc1, out_features: 8}, relu, "
    "{type: linear, name: fc2, out_features: 10}]";

TEST(Experiment, TrainsNothingThatIsFrozen) {
  for (const std::string& model :
       {std::string("{frozen: 'fc1.*', layers: ") + kLayers + "}",
        std::string("{frozen: [fc1.weight, '*1.bias'], layers: ") + kLayers + "}",
        std::string("[flatten, {type: linear, name: fc1, out_features: 8, trainable: false}, relu, "
                    "{type: linear, name: fc2, out_features: 10}]")}) {
    const auto e = build(model, "sparsity: {sparsity: 0.5, param_filter: '*.weight'}\n");
    const ParameterPtr frozen = e->model->parameter("fc1.weight"),
                       trained = e->model->parameter("fc2.weight");
    EXPECT_FALSE(frozen->trainable);
    EXPECT_FALSE(e->model->parameter("fc1.bias")->trainable);
    const std::vector<float> before = frozen->to_dense().to_vector(),
                             other = trained->to_dense().to_vector();
    take_steps(*e, 1);
    EXPECT_EQ(frozen->to_dense().to_vector(), before);
    EXPECT_EQ(frozen->byte_counts().gradient + frozen->byte_counts().states, 0);
    EXPECT_TRUE(frozen->pattern()->is_dense());
    EXPECT_NE(trained->to_dense().to_vector(), other);
    EXPECT_EQ(trained->pattern()->nnz(), 40);
    // It is in the state as any other, and comes back.
    const StateDict state = e->state_dict();
    EXPECT_TRUE(state.contains("model/fc1.weight"));
    const auto again = build(model, "sparsity: {sparsity: 0.5, param_filter: '*.weight'}\n");
    again->model->load_state_dict(state.below("model"));
    again->optimizer->load_state_dict(state.below("optimizer"));
    EXPECT_EQ(again->model->parameter("fc1.weight")->to_dense().to_vector(), before);
  }
}

TEST(Experiment, RefusesToFreezeWhatThereIsNotAndAllThereIs) {
  expect_throws<ConfigError>(
      [] { build(std::string("{frozen: [fc1.bias, fc3.bias], layers: ") + kLayers + "}"); },
      "e.yaml:2:17: model.frozen: 'fc3.bias' matches no parameter; did you mean 'fc1.bias'?");
  expect_throws<ConfigError>([] { build(std::string("{frozen: '*', layers: ") + kLayers + "}"); },
                             "model.frozen: all parameters of the model are frozen, so there is "
                             "nothing to train; leave some out of `frozen`, or remove");
  expect_throws<ConfigError>(
      [] { build("[flatten, {type: linear, out_features: 10, trainable: false}]"); },
      "e.yaml:2:8: model: all parameters of the model are frozen");
}

// Of data that is not there, with these lines besides.
std::string refusal_of(const std::string& data, const std::string& more = "") {
  try {
    build_experiment(parse_yaml("data: " + data + "\nmodel: " + kLayers + "\n" + more, "e.yaml"));
  } catch (const DataError& error) {
    return std::string("DataError: ") + error.what();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kAdam =
    "optimizer: {type: adam, warmup: 3, no_decay: [bias], groups: "
    "[{params: '*.bias', lr: 0.1}]}\n";

// A misspelt key is told before files that are missing.
TEST(Experiment, TellsUnknownKeysBeforeMissingData) {
  const std::string good = "{type: mnist, dir: missing, validation: 0.1, normalize: standard}";
  const std::string adam = kAdam;
  for (const auto& [refusal, expected] : std::vector<std::pair<std::string, std::string>>{
           {refusal_of("{type: mnist, dir: missing, validaton: 0.1}", adam),
            "e.yaml:1:46: data.validaton: unknown key 'validaton'; did you mean 'validation'?"},
           {refusal_of(good, "optimizer: {type: adam, beta: [0.9, 0.99]}\n"),
            "e.yaml:3:31: optimizer.beta: unknown key 'beta'; did you mean 'betas'?"},
           {refusal_of(good, adam + "train: {epoch: 3}\n"),
            "e.yaml:4:16: train.epoch: unknown key 'epoch'; did you mean 'epochs'?"},
           {refusal_of(good, adam + "sparsity: {algorithm: rigl, sparsity: 0.5, update: {frq: 3}}"),
            "e.yaml:4:58: sparsity.update.frq: unknown key 'frq'; did you mean 'freq', which is "
            "required and missing?"}}) {
    EXPECT_EQ(refusal, expected);
  }
}

// And no key that is known is called unknown because files are missing.
TEST(Experiment, TellsMissingDataWhereAllKeysAreKnown) {
  for (
      const std::string data :
      {"{type: mnist, dir: missing, num_classes: 10, validation: 0.1, limit: 100, normalize: "
       "{mean: 0, std: 1}, augment: {crop: 2, flip: true}}",
       "{type: cifar10, dir: missing, limit: 100, augment: {cutout: 4}}",
       "{type: cifar100, dir: missing, labels: coarse}",
       "{type: image_folder, dir: missing, size: 32, channels: 1}",
       "{type: image_folder, train_dir: missing, validation_dir: m, test_dir: m, size: [8, 8]}",
       "{type: csv, train: missing, test: m, header: true, delimiter: ';', label_column: y, task: "
       "regression, normalize_targets: true, normalize: standard, validation: 0.1}",
       "{type: csv, train: missing, num_classes: 3}",
       "{type: hdf5, path: missing, train_inputs: x, train_targets: y, test_inputs: x, "
       "test_targets: y, task: classification, num_classes: 3, follow_links: true}",
       "{type: text, path: missing, context: 8, stride: 4, tokenizer: words, min_count: 2, "
       "max_size: 100, lower_case: true, validation: 0.1, test: 0.1, mask_fraction: 0.15}",
       "{type: text, path: m, tokenizer: bpe, vocab: missing, merges: m, test: m, context: 8}",
       "{type: tokens, dir: missing, vocab_size: 100, context: 8, mask_fraction: 0.15, mask_id: 1}",
       "{type: tokens, dir: m, vocab: missing, merges: m, mask_fraction: 0.15, mask_token: x}",
       "{type: labelled_text, train: missing, validation: m, test: m, text_column: a, "
       "label_column: "
       "b, tokenizer: words, min_count: 1, max_size: 0, cls: true, max_length: 8, streamed: false}",
       "{type: labelled_text, train: m, tokenizer: wordpiece, vocab: missing, lower_case: true, "
       "max_length: 8, num_classes: 2}"}) {
    const std::string refusal = refusal_of(data, std::string(kAdam) +
                                                     "sparsity: {algorithm: rigl, sparsity: 0.5}\n"
                                                     "train: {epochs: 3}\nloss: cross_entropy\n");
    EXPECT_TRUE(refusal.starts_with("DataError: ")) << data << "\n" << refusal;
  }
}

// 784 · 8 + 8 and 8 · 10 + 10 values of 4 bytes.
TEST(Experiment, AsksForMemoryForTheValuesThatAreStored) {
  constexpr int64_t kFirst = 784 * 8 * 4, kOthers = (8 + 80 + 10) * 4;
  const auto fits = [](Experiment& e, int64_t memory) {
    require_values_fit(*e.model, e.layers, memory);
  };
  const auto dense = build(kLayers);
  fits(*dense, kFirst + kOthers);
  expect_throws<MemoryError>([&] { fits(*dense, kFirst + kOthers - 1); },
                             "e.yaml:2:8: model: out of memory: the values of 4 parameters take "
                             "0.0 MB (the most in layer 'fc1' (linear): parameter 'fc1.weight' "
                             "[8, 784] with 6272 values: 0.0 MB), and there are 0.0 MB in all");
  expect_throws<MemoryError>(
      [&] { fits(*dense, kFirst - 1); },
      "e.yaml:2:18: model.1: layer 'fc1' (linear): parameter 'fc1.weight' [8, 784] with 6272 "
      "values: out of memory: 0.0 MB more were requested, and there are 0.0 MB in all");
  // Of a compressed weight the nonzeros alone count.
  const auto sparse = build(kLayers,
                            "sparsity: {algorithm: static, sparsity: 0.9, layout: csr, "
                            "param_filter: fc1.weight}\n");
  fits(*sparse, kFirst / 10 + kOthers + 64);
}

// With a gradient and a momentum for each value that is trained, and an average of all.
TEST(Experiment, AsksForMemoryForWhatIsTrained) {
  constexpr int64_t kFirst = (784 * 8 + 8) * 4, kLast = (80 + 10) * 4;
  const std::string frozen =
      "[flatten, {type: linear, name: fc1, out_features: 8, trainable: false}, relu, "
      "{type: linear, name: fc2, out_features: 10}]";
  build(kLayers)->require_training_fits(3 * (kFirst + kLast));
  build(frozen)->require_training_fits(kFirst + 3 * kLast);
  for (const auto& [model, bytes] :
       {std::pair{std::string(kLayers), 3 * (kFirst + kLast)}, {frozen, kFirst + 3 * kLast}}) {
    expect_throws<MemoryError>(
        [&, &text = model, &fit = bytes] { build(text)->require_training_fits(fit - 1); },
        "e.yaml:2:8: model: out of memory: values, gradients and optimizer "
        "states of 4 parameters take 0.");
  }
  const auto averaged = build_experiment(
      parse_yaml(std::string("data: {type: glyphs, train_size: 40, test_size: 10}\nmodel: ") +
                     kLayers + "\noptimizer: {type: adam}\ntrain: {batch_size: 20, ema: 0.9}\n",
                 "e.yaml"));
  averaged->require_training_fits(5 * (kFirst + kLast));
  EXPECT_THROW(averaged->require_training_fits(5 * (kFirst + kLast) - 1), MemoryError);
}

// No more is asked for than a step then holds.
TEST(Experiment, AsksForTheMemoryThatAStepTakes) {
  for (const char* sparsity : {"", "sparsity: {sparsity: 0.9, layout: csr}\n",
                               "sparsity: {sparsity: 0.5, layout: masked}\n"}) {
    const auto e = build(kLayers, sparsity);
    take_steps(*e, 1);
    int64_t held = 0;
    for (const ParameterPtr& parameter : e->model->parameters()) {
      const ParameterBytes bytes = parameter->byte_counts();
      EXPECT_EQ(e->optimizer->state_bytes(*parameter), bytes.states) << parameter->name();
      held += bytes.values + bytes.gradient + bytes.states;
    }
    e->require_training_fits(held);
    EXPECT_THROW(e->require_training_fits(held - 1), MemoryError);
  }
}

// Before the rest of the model is made, and anything drawn or measured; at the place where the
// layer is written; and where the bytes overflow.
TEST(Experiment, RefusesValuesThatNeverFitBeforeThereAreAny) {
  const std::string huge = "{type: linear, name: wide, out_features: 4000000000000000}";
  const std::string words =
      "[4000000000000000, 1000] with 4000000000000000000 values: out of memory: 16000000000000.0 "
      "MB more were requested, and there are ";
  const std::string nested = "{define: {block: {layers: [" + huge +
                             ", relu, {type: linear, name: narrow, out_features: 10}]}}, layers: "
                             "[flatten, {type: linear, out_features: 1000}, {type: block, name: "
                             "b}]}";
  reset_memory_peak();
  const int64_t before = memory_stats().current;
  expect_throws<MemoryError>([&] { build(nested); },
                             "model.define.block.layers.0: layer 'b.wide' (linear): parameter "
                             "'b.wide.weight' " +
                                 words);
  // Another weight's sparsity does not help it, nor does a little of its own.
  expect_throws<MemoryError>(
      [&] {
        build(nested, "sparsity: {sparsity: 0.5, param_filter: 'linear1.weight', layout: csr}\n");
      },
      "layer 'b.wide' (linear): parameter 'b.wide.weight' " + words);
  expect_throws<MemoryError>([&] { build(nested, "sparsity: 0.5\n"); },
                             "e.yaml:5:11: sparsity: parameter 'b.wide.weight' [4000000000000000, "
                             "1000] with ");
  EXPECT_LT(memory_stats().peak - before, int64_t{1} << 23);
  // A shortcut that is not used takes nothing.
  build("[flatten, {type: residual, shortcut: " + huge +
        ", layers: [relu]}, {type: linear, out_features: 10}]");
}

TEST(Experiment, AsksForAnOutputForEachDecision) {
  expect_throws<ConfigError>(
      [] {
        build_experiment(parse_yaml(
            "data: {type: synthetic, features: 4, classes: 2, train_size: 8, test_size: 8}\n"
            "model: [{type: linear, out_features: 2}]\noptimizer: {type: adam}\n"
            "loss: binary_cross_entropy\n",
            "e.yaml"));
      },
      "gives shape [2] per example; the data has 1 decisions, so it must give [1]");
}

TEST(Experiment, SaysHowAPresetGetsAnotherHead) {
  expect_throws<ConfigError>(
      [] {
        build_experiment(parse_yaml(
            "data: {type: colour_glyphs, train_size: 8, test_size: 8}\noptimizer: {type: adam}\n"
            "model: {type: vit, patch_size: 8, hidden_size: 8, num_hidden_layers: 1, "
            "num_attention_heads: 1, intermediate_size: 8, num_labels: 3}\n",
            "e.yaml"));
      },
      "so it must give [10] (set num_labels: 10 in the preset; the head of a file then differs, "
      "and init_from can skip it); within the preset 'vit' at e.yaml");
}

}  // namespace
}  // namespace lacuna::experiment_test
