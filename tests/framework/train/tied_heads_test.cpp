// Heads that are tied to an embedding and sparse: one pattern for two uses.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/train/training_steps.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "state_differences.h"
#include "temporary_folder.h"

namespace lacuna::tied_heads_test {
namespace {

struct Algorithm {
  const char* name;
  std::string yaml;
};

std::ostream& operator<<(std::ostream& out, const Algorithm& a) { return out << a.name; }

class TiedHeads : public testing::TestWithParam<Algorithm> {
 protected:
  TiedHeads() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "w" + std::to_string(i * i * 7 % 53) + " ";
    text_ = folder_.write("text.txt", text);
  }

  std::unique_ptr<Experiment> build(const std::string& layout, const std::string& train = "",
                                    const std::string& algorithm = GetParam().yaml) const {
    return build_experiment(parse_yaml(
        "data: {type: text, tokenizer: words, context: 8, path: " + text_ + "}\n" +
            "model:\n"
            "  - {type: token_embedding, name: wte, features: 16, init: {type: normal, std: 0.3}}\n"
            "  - {type: linear, name: fc, out_features: 16}\n  - gelu\n"
            "  - {type: linear, name: head, tied_to: wte, bias: false}\n"
            "optimizer: {type: adamw, lr: 0.003, clip_norm: 1.0}\n"
            "train: {steps: 9, batch_size: 6, seed: 2" +
            train + "}\nsparsity: {param_filter: [wte.weight], layout: " + layout +
            ", algorithm: " + algorithm + "}\n",
        "heads.yaml"));
  }

  TemporaryFolder folder_;
  std::string text_;
};

// In whichever layout, and whatever the batch is cut into.
TEST_P(TiedHeads, TrainAsTheDenseProductWithZerosDoes) {
  const auto masked = build("masked", ", shards: 0");
  take_steps(*masked, 6);
  const ParameterPtr expected = masked->model->parameter("wte.weight");
  for (const auto& [layout, shards] :
       {std::pair{"csr", "0"}, {"csr", "4"}, {"masked", "4"}, {"csr", "2, accumulate: 2"}}) {
    SCOPED_TRACE(std::string(layout) + ", shards " + shards);
    const bool accumulates = std::string(shards).size() > 1;
    const auto other = build(layout, std::string(", shards: ") + shards);
    const auto reference = accumulates ? build("masked", ", shards: 0, accumulate: 2") : nullptr;
    take_steps(*other, 6);
    if (accumulates) take_steps(*reference, 6);
    const ParameterPtr weight = other->model->parameter("wte.weight");
    const ParameterPtr same = accumulates ? reference->model->parameter("wte.weight") : expected;
    EXPECT_EQ(weight->pattern()->layout().name(), layout);
    EXPECT_LT(weight->pattern()->nnz(), weight->numel());
    EXPECT_EQ(weight->mask().values, same->mask().values);
    const std::vector<float> x = same->to_dense().to_vector(), y = weight->to_dense().to_vector();
    for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-4f) << k;
  }
}

TEST_P(TiedHeads, CollectTheGradientsOfBothUsesAtTheNonzeros) {
  const auto csr = build("csr");
  take_steps(*csr, 1);
  const ParameterPtr weight = csr->model->parameter("wte.weight");
  run_batches(*csr);
  EXPECT_EQ(weight->gradient().numel(), weight->pattern()->stored_size());
  const Tensor sparse = weight->compacted(weight->gradient());
  // The same batch through the same weights, whole.
  const auto dense = build("masked");
  take_steps(*dense, 1);
  const ParameterPtr whole = dense->model->parameter("wte.weight");
  whole->set_pattern(Pattern::dense(whole->shape()));
  whole->zero_gradient();
  run_batches(*dense);
  size_t element = 0;
  weight->pattern()->positions().for_each([&](int64_t flat) {
    ASSERT_NEAR(sparse.data()[element++], whole->gradient().data()[flat], 1e-5f) << flat;
  });
}

TEST_P(TiedHeads, GoOnFromACheckpointToTheSameBits) {
  for (const char* layout : {"masked", "csr"}) {
    const auto whole = build(layout), resumed = build(layout);
    take_steps(*whole, 3);
    resumed->load_state_dict(whole->state_dict());
    take_steps(*whole, 4);
    take_steps(*resumed, 4);
    EXPECT_THAT(differences(whole->model->state_dict(), resumed->model->state_dict()),
                testing::IsEmpty());
    EXPECT_THAT(differences(whole->optimizer->state_dict(), resumed->optimizer->state_dict()),
                testing::IsEmpty());
  }
}

TEST_P(TiedHeads, GiveTheSameBitsOnAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<std::unique_ptr<Experiment>> runs;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    runs.push_back(build("csr", ", shards: 3"));
    take_steps(*runs.back(), 5);
  }
  set_num_threads(before);
  EXPECT_THAT(differences(runs[0]->state_dict(), runs[1]->state_dict()), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, TiedHeads,
    testing::Values(Algorithm{"Static", "static, sparsity: 0.8"},
                    Algorithm{"Gmp",
                              "gmp, update: {freq: 2}, sparsity: {type: linear, init: 0.3, "
                              "slope: 0.05}"},
                    Algorithm{"Set", "set, sparsity: 0.8, update: {freq: 2}"},
                    Algorithm{"RigL", "rigl, sparsity: 0.8, update: {freq: 2}"}),
    [](const auto& test) { return test.param.name; });

// Layouts of patterns, too.
TEST(TiedHeadsOfPatterns, AreStoredInThePatternsLayout) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "w" + std::to_string(i % 29) + " ";
  const std::string path = folder.write("text.txt", text);
  const auto e = build_experiment(
      parse_yaml("data: {type: text, tokenizer: words, context: 8, path: " + path +
                     "}\nmodel:\n  - {type: token_embedding, name: wte, features: 16, "
                     "init: {type: normal, std: 0.1}}\n"
                     "  - {type: linear, name: head, tied_to: wte}\n"
                     "optimizer: {type: adam, lr: 0.02}\ntrain: {steps: 9, batch_size: 6}\n"
                     "sparsity: {param_filter: [wte.weight], algorithm: static, layout: nm, "
                     "pattern: {type: nm, n: 2, m: 4}}\n",
                 "heads.yaml"));
  e->model->train();
  const double first = run_batches(*e).mean_loss();
  double last = first;
  for (int step = 0; step < 5; ++step) {
    e->optimizer->step();
    e->optimizer->zero_grad();
    last = run_batches(*e).mean_loss();
  }
  EXPECT_LT(last, first);
  EXPECT_EQ(e->model->parameter("wte.weight")->pattern()->layout().name(), "nm 2:4");
}

}  // namespace
}  // namespace lacuna::tied_heads_test
