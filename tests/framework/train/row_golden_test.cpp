// Training of tables whose rows get gradients only where a batch uses them, and of sparse tied
// heads, against row_golden.json, which row_golden.py computes with NumPy alone.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "golden_json.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/param/row_gradient.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/optimizers/optimizer_registry.h"

namespace lacuna::row_golden_test {
namespace {

using golden_json::floats;

// Errors of float32 over six steps, of which Adam's divide by roots of small squares.
constexpr float kOfLargest = 5e-5f;

Batch batch_of(const Config& step) {
  Batch batch;
  const Shape shape(step.at("shape").as<std::vector<int64_t>>());
  const IndexTensor ids = golden_json::integers(shape, step.at("ids"));
  const auto labels = static_cast<int64_t>(step.at("labels").items().size());
  if (step.has("values")) {
    batch.inputs = Tensor::from(shape, floats(step.at("values")));
    batch.named[kFeatureIds] = ids;
    batch.labels = golden_json::integers({labels}, step.at("labels"));
  } else {
    batch.named[kInputIds] = ids;
    batch.labels = golden_json::integers(shape, step.at("labels"));
  }
  batch.size = shape[0];
  return batch;
}

class GoldenRun {
 public:
  GoldenRun(const Config& expected, const Layout& layout) {
    const Shape example(expected.at("example").as<std::vector<int64_t>>());
    model_ = build_model(
        model_layers(parse_yaml(expected.required<std::string>("layers"), "layers")), example);
    golden_json::set_arrays(*model_, expected.at("arrays"));
    const auto mask = expected.at("mask").as<std::vector<int64_t>>();
    if (std::ranges::count(mask, 0) > 0) {
      const std::vector<uint8_t> bits(mask.begin(), mask.end());
      table()->set_pattern(Pattern::make(layout, table()->shape(), BitMask::from_bytes(bits)));
    }
    optimizer_ = make_optimizer(expected.at("optimizer"), model_->parameters());
  }
  void backward_of(const Batch& batch) {
    optimizer_->zero_grad();
    backward(cross_entropy(run_model(*model_, batch), batch.labels));
  }
  void step() {
    optimizer_->step();
    table()->prune();
  }
  ParameterPtr table() const { return model_->parameter("table.weight"); }
  Module& model() const { return *model_; }

 private:
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<Optimizer> optimizer_;
};

class RowGolden : public testing::Test {
 protected:
  RowGolden() { register_builtins(); }
  static std::vector<Config> cases(bool tied) {
    std::vector<Config> chosen;
    for (const Config& one : golden_json::load("framework/train/row_golden.json").items()) {
      if ((one.required<std::string>("kind") == "tied") == tied) chosen.push_back(one);
    }
    return chosen;
  }
  static std::string name_of(const Config& expected) {
    return expected.required<std::string>("kind") + ", " + expected.at("optimizer").to_json();
  }
  // Of a sparse parameter, states are compared at the nonzeros.
  static void expect_end(const GoldenRun& run, const Config& expected, const std::string& what) {
    const auto mask = expected.at("mask").as<std::vector<int64_t>>();
    for (const ParameterPtr& parameter : run.model().parameters()) {
      const std::string name = what + ", " + parameter->name();
      golden_json::expect_close(parameter->to_dense().to_vector(),
                                floats(expected.at("last").at(parameter->name())), kOfLargest,
                                name);
      const auto states = expected.at("states").at(parameter->name()).entries();
      EXPECT_EQ(parameter->slots().size(), states.size()) << name;
      for (const auto& [slot, values] : states) {
        const Tensor state = parameter->slot(slot);
        std::vector<float> found = state.to_vector(), all = floats(values);
        if (!parameter->pattern()->is_dense()) {
          found = parameter->compacted(state).to_vector();
          size_t place = 0;
          std::erase_if(all, [&](float) { return mask[place++] == 0; });
        }
        golden_json::expect_close(found, all, kOfLargest, name + ", " + slot);
      }
    }
  }
};

TEST_F(RowGolden, UsedRowsAndTheirStatesFollowTheFormulas) {
  const std::vector<Config> all = cases(false);
  ASSERT_EQ(all.size(), 6u);
  for (const Config& expected : all) {
    const std::string what = name_of(expected);
    GoldenRun run(expected, masked_layout());
    for (const Config& step : expected.at("steps").items()) {
      const auto used = step.at("used").as<std::vector<int64_t>>();
      const std::vector<float> before = run.table()->values().to_vector();
      run.backward_of(batch_of(step));
      ASSERT_NE(run.table()->row_gradient(), nullptr) << what;
      EXPECT_EQ(run.table()->row_gradient()->rows, used) << what;
      run.step();
      const std::vector<float> after = run.table()->values().to_vector();
      golden_json::expect_close(after, floats(step.at("table")), kOfLargest, what);
      const auto columns = static_cast<size_t>(run.table()->shape()[1]);
      for (size_t i = 0; i < after.size(); ++i) {
        const bool is_used = std::ranges::binary_search(used, static_cast<int64_t>(i / columns));
        EXPECT_EQ(after[i] != before[i], is_used) << what << ", row " << i / columns;
      }
    }
    expect_end(run, expected, what);
  }
}

TEST_F(RowGolden, SparseTiedHeadsFollowTheFormulasInEachLayout) {
  const std::vector<Config> all = cases(true);
  ASSERT_EQ(all.size(), 2u);
  for (const Config& expected : all) {
    // Without an algorithm, `masked` has gradients of zeros, too, which would count in a norm.
    const bool is_clipped = expected.at("optimizer").has("clip_norm");
    for (const Layout* layout : {&csr_layout(), &masked_layout()}) {
      if (is_clipped && layout == &masked_layout()) continue;
      const std::string what = name_of(expected) + ", " + std::string(layout->name());
      GoldenRun run(expected, *layout);
      for (const Config& step : expected.at("steps").items()) {
        run.backward_of(batch_of(step));
        run.step();
        golden_json::expect_close(run.table()->to_dense().to_vector(), floats(step.at("table")),
                                  kOfLargest, what);
      }
      expect_end(run, expected, what);
    }
  }
}

}  // namespace
}  // namespace lacuna::row_golden_test
