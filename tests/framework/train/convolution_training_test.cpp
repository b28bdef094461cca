// Small residual convolutional networks, trained end to end from a configuration.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "framework/train/tiny_convolution.h"
#include "framework/train/training_steps.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "state_differences.h"
#include "throws.h"

namespace lacuna::convolution_training_test {
namespace {

using testing::IsEmpty;

std::string text_of(const std::string& sparsity, const std::string& more = "") {
  return std::string(
             "data: {type: colour_glyphs, train_size: 256, test_size: 32, normalize: standard, "
             "augment: {crop: 4, flip: true, cutout: 8}}\nmodel:") +
         kTinyConvolutionModel +
         "optimizer: {type: adam, lr: 0.01}\n"
         "train: {batch_size: 40, threads: 1, epochs: 2, drop_last: false}\n" +
         (sparsity.empty() ? ""
                           : "sparsity: {param_filter: " + std::string(kTinyConvolutionFilter) +
                                 ", " + sparsity + "}\n") +
         more;
}

std::unique_ptr<Experiment> build(const std::string& sparsity, const std::string& more = "") {
  return build_experiment(parse_yaml(text_of(sparsity, more), "e.yaml"));
}

const std::vector<std::string>& convolutions() {
  static const std::vector<std::string> all = {"layer1.conv1.weight", "layer1.conv2.weight",
                                               "layer2.conv1.weight", "layer2.conv2.weight"};
  return all;
}

int64_t kept(const Experiment& e) {
  int64_t total = 0;
  for (const std::string& name : convolutions()) {
    total += e.model->parameter(name)->pattern()->nnz();
  }
  return total;
}

constexpr int64_t kWeights = 9 * (8 * 8 + 8 * 8 + 8 * 16 + 16 * 16);

void expect_in_layout(const Experiment& e, const std::string& layout) {
  for (const std::string& name : convolutions()) {
    EXPECT_EQ(e.model->parameter(name)->pattern()->layout().name(), layout) << name;
  }
}

// Values that training has changed, and none outside of the mask.
void expect_pruned(const Experiment& e) {
  for (const std::string& name : convolutions()) {
    const ParameterPtr p = e.model->parameter(name);
    const ByteArray mask = p->mask();
    const std::vector<float> values = p->to_dense().to_vector();
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(std::isfinite(values[i]));
      if (mask.values[i] != 0) continue;
      ASSERT_EQ(values[i], 0.0f) << name << " at " << i;
    }
  }
}

// On one thread: a few examples are not worth more, where other tests run beside these.
class ConvolutionTraining : public testing::Test {
 protected:
  ConvolutionTraining() { set_num_threads(1); }
  ~ConvolutionTraining() override { set_num_threads(before_); }

 private:
  const int before_ = num_threads();
};

TEST_F(ConvolutionTraining, InCsrGoesAsInMasked) {
  const std::string sparsity = "algorithm: static, sparsity: 0.8, layout: ";
  const auto masked = build(sparsity + "masked"), csr = build(sparsity + "csr");
  expect_in_layout(*masked, "masked");
  expect_in_layout(*csr, "csr");
  EXPECT_NEAR(static_cast<double>(kept(*csr)), 0.2 * kWeights, 4.0);
  ASSERT_EQ(masked->total_steps(), 14);  // the last batch of an epoch is of 16
  const std::vector<double> a = take_steps(*masked, 14), b = take_steps(*csr, 14);
  const auto epoch = [&](int64_t number) {
    const auto first = a.begin() + 7 * number;
    return std::accumulate(first, first + 7, 0.0);
  };
  EXPECT_LT(epoch(1), epoch(0));
  for (size_t i = 0; i < a.size(); ++i) {
    // Sums of floats in another order, the stem's among them, differ by 1e-7 of themselves; what
    // Adam and norms make of that in a few steps stays a hundred times that. Later, a maximum of
    // the pooling behind the stem is another pixel's, and takes the gradient there.
    EXPECT_NEAR(a[i], b[i], (i < 5 ? 1e-5 : 1e-3) * a[i]) << i;
  }
  for (const std::string& name : convolutions()) {
    EXPECT_EQ(csr->model->parameter(name)->mask(), masked->model->parameter(name)->mask());
  }
  expect_pruned(*csr);
}

TEST_F(ConvolutionTraining, RunsNormsAsOnePassWithWhatIsBehindThem) {
  for (const char* layout : {"masked", "csr"}) {
    const auto e = build("algorithm: static, sparsity: 0.8, layout: " + std::string(layout));
    std::vector<std::string> nodes;
    const BackwardTrace trace([&](const NodeRun& node) {
      if (node.name != "linear" && node.name != "conv2d") nodes.push_back(node.name);
    });
    run_batches(*e);
    EXPECT_EQ(std::ranges::count(nodes, "batch_norm"), 5);
    EXPECT_EQ(std::ranges::count(nodes, "relu"), 0);
    EXPECT_EQ(std::ranges::count(nodes, "add"), 0);
  }
}

struct Method {
  std::string name, options;
  double density = 0.2;      ///< after 8 steps
  bool is_changing = false;  ///< whether the mask is another by then
  bool in_csr = true;        ///< whether it can be stored so
};

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {"static", "algorithm: static, sparsity: 0.8"},
      {"static by score", "algorithm: static, sparsity: 0.8, init_method: topk"},
      {"set", "algorithm: set, sparsity: 0.8, update: {freq: 2}", 0.2, true},
      {"rigl", "algorithm: rigl, sparsity: 0.8, update: {freq: 2}", 0.2, true},
      {"snfs", "algorithm: snfs, sparsity: 0.8, update: {freq: 2}", 0.2, true},
      {"snip", "algorithm: snip, sparsity: 0.8", 0.2, true},
      {"gmp",
       "algorithm: gmp, update: {freq: 2}, sparsity: {type: polynomial, init: 0.1, final: 0.8, "
       "start: 0, end: 6}",
       0.2, true},
      {"saliency",
       "algorithm: saliency, update: {freq: 2}, sparsity: {type: polynomial, init: 0.1, final: "
       "0.8, start: 0, end: 6}",
       0.2, true},
      {"ste",
       "algorithm: ste, update: {freq: 2}, sparsity: {type: polynomial, init: 0.1, final: 0.8, "
       "start: 0, end: 6}",
       0.2, true},
      {"erk", "algorithm: rigl, sparsity: 0.8, distribution: erk, update: {freq: 2}", 0.2, true},
      {"N:M of input channels", "algorithm: static, pattern: {type: nm, n: 2, m: 4}", 0.5},
      {"N:M by set", "algorithm: set, pattern: {type: nm, n: 1, m: 4}, update: {freq: 2}", 0.25,
       true},
      {"N:M by rigl",
       "algorithm: rigl, pattern: {type: nm, n: 1, m: 4, group: 4}, update: {freq: 2}", 0.25, true},
      {"blocks", "algorithm: static, sparsity: 0.75, pattern: {type: block, rows: 4, cols: 4}",
       0.25},
      {"blocks by rigl",
       "algorithm: rigl, sparsity: 0.75, pattern: {type: block, rows: 2, cols: 4}, update: {freq: "
       "2}",
       0.25, true},
      {"blocks by gmp",
       "algorithm: gmp, pattern: {type: block, rows: 4, cols: 2}, update: {freq: 2}, sparsity: "
       "{type: polynomial, init: 0.1, final: 0.75, start: 0, end: 6}",
       0.25, true},
      {"semi-sparse", "algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}", 0.5, true},
  };
  return all;
}

TEST_F(ConvolutionTraining, EveryAlgorithmRunsAndKeepsItsSparsity) {
  for (const Method& method : methods()) {
    std::vector<double> expected;
    for (const char* layout : {"masked", "csr"}) {
      SCOPED_TRACE(method.name + " in " + layout);
      const auto e = build(method.options + ", layout: " + layout, "");
      const ByteArray before = e->model->parameter(convolutions()[3])->mask();
      const std::vector<double> losses = take_steps(*e, 8);
      // A block of 16 positions, or a rounding, for each of four weights.
      EXPECT_NEAR(static_cast<double>(kept(*e)), method.density * kWeights, 64.0);
      EXPECT_EQ(!(e->model->parameter(convolutions()[3])->mask() == before), method.is_changing);
      expect_pruned(*e);
      expect_in_layout(*e, layout);
      if (expected.empty()) expected = losses;
      // Up to the first update the masks are the same. Two nearly equal scores may then be ranked
      // by a rounding, and another weight grow, so after it the losses are alike, not the same.
      for (size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], expected[i], i < 2 ? 1e-5 : 5e-3) << i;
      }
    }
  }
}

// Of every four input channels of a tap of an output at most two, tap by tap.
TEST_F(ConvolutionTraining, PatternsLieAlongInputChannels) {
  const auto e = build(
      "algorithm: rigl, pattern: {type: nm, n: 2, m: 4}, update: "
      "{freq: 2}, layout: csr");
  take_steps(*e, 5);
  for (const std::string& name : convolutions()) {
    const ParameterPtr p = e->model->parameter(name);
    const Shape& w = p->shape();
    const ByteArray mask = p->mask();
    for (int64_t o = 0; o < w[0]; ++o) {
      for (int64_t tap = 0; tap < 9; ++tap) {
        for (int64_t first = 0; first < w[1]; first += 4) {
          int count = 0;
          for (int64_t c = first; c < first + 4; ++c) {
            count += mask.values[static_cast<size_t>((o * w[1] + c) * 9 + tap)];
          }
          EXPECT_EQ(count, 2) << name;
        }
      }
    }
  }
}

StateDict state_after(const Config& config, int64_t steps, int threads) {
  set_num_threads(threads);
  const auto e = build_experiment(config);
  take_steps(*e, steps);
  return e->state_dict();
}

TEST_F(ConvolutionTraining, GivesTheSameTopologyAndBitsForOneThreadAndTwo) {
  for (const char* layout : {"masked", "csr", "auto"}) {
    const std::string sparsity = "algorithm: rigl, sparsity: 0.8, update: {freq: 2}, layout: ";
    // Each from nothing: what is measured by either is not what the other has.
    const auto after = [&](int threads) {
      return state_after(parse_yaml(text_of(sparsity + layout), "e.yaml"), 3, threads);
    };
    const StateDict one = after(1), two = after(2);
    EXPECT_THAT(differences(one, two), IsEmpty()) << layout;
  }
}

TEST_F(ConvolutionTraining, AFrozenNormKeepsItsMoments) {
  const auto e = build_experiment(
      parse_yaml("data: {type: colour_glyphs, train_size: 64, test_size: 8}\n"
                 "model:\n"
                 "  frozen: ['bn1.*']\n"
                 "  layers:\n"
                 "    - {type: conv2d, name: conv, out_channels: 4, kernel: 3, stride: 4}\n"
                 "    - {type: batch_norm, name: bn1}\n"
                 "    - {type: batch_norm, name: bn2}\n"
                 "    - {type: batch_norm, name: bn3, trainable: false}\n"
                 "    - global_average_pool\n"
                 "    - {type: linear, name: fc, out_features: 10}\n"
                 "optimizer: {type: adam}\n"
                 "train: {batch_size: 32, threads: 1}\n",
                 "e.yaml"));
  const auto moments = [&](const std::string& name) {
    for (const auto& [path, buffer] : e->model->buffers()) {
      if (path == name) return buffer->to_vector();
    }
    throw StateError("there is no buffer " + name);
  };
  take_steps(*e, 2);
  EXPECT_EQ(moments("bn1.running_mean"), std::vector<float>(4, 0.0f));
  EXPECT_NE(moments("bn2.running_mean"), std::vector<float>(4, 0.0f));
  EXPECT_EQ(moments("bn3.running_var"), std::vector<float>(4, 1.0f));
}

// The norm behind the pooling has one value of each example.
TEST_F(ConvolutionTraining, ABatchOfOneValueSaysWhatToDoBeforeTheFirstStep) {
  const auto with = [](const std::string& options, const std::string& norm = "") {
    return build_experiment(
        parse_yaml("data: {type: colour_glyphs, train_size: 9, test_size: 8}\n"
                   "model:\n"
                   "  - {type: conv2d, out_channels: 4, kernel: 3, stride: 4}\n"
                   "  - batch_norm\n"
                   "  - global_average_pool\n"
                   "  - {type: batch_norm, name: last" +
                       norm +
                       "}\n"
                       "  - {type: linear, out_features: 10}\n"
                       "optimizer: {type: adam}\n"
                       "train: {threads: 1, " +
                       options + "}\n",
                   "e.yaml"));
  };
  expect_throws<ConfigError>(
      [&] { with("batch_size: 8"); },
      "e.yaml:9:8: train: the last batch of an epoch of training is of one example, and layer "
      "'last' (batch_norm), which is given shape [4] per example, needs more than one value per "
      "channel; give drop_last: true, or another batch_size");
  expect_throws<ConfigError>([&] { with("batch_size: 1"); },
                             "train: the batches of training are of one example, and layer 'last'");
  take_steps(*with("batch_size: 8, drop_last: true"), 2);
  take_steps(*with("batch_size: 5"), 2);
  take_steps(*with("batch_size: 8, steps: 1"), 1);  // the last batch is never reached
  take_steps(*with("batch_size: 8", ", trainable: false"), 2);
  expect_throws<ConfigError>(
      [&] { with("batch_size: 8", ", trainable: false, track_running_stats: false"); },
      "layer 'last' (batch_norm)");
}

}  // namespace
}  // namespace lacuna::convolution_training_test
