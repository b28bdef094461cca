// Scores, choices of units and smaller models against golden.json, which golden.py computes with
// NumPy alone.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/onnx/onnx_models.h"
#include "golden_json.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/shrink/cut_state.hpp"
#include "lacuna/framework/shrink/smaller_model.hpp"
#include "lacuna/framework/shrink/structured.hpp"
#include "lacuna/framework/shrink/unit_choice.hpp"
#include "lacuna/framework/shrink/unit_scores.hpp"
#include "lacuna/optimizers/sgd.h"

namespace lacuna::golden_test {
namespace {

using golden_json::expect_close;
using golden_json::floats;
using golden_json::lists;
using golden_json::set_arrays;

Config golden(const std::string& part) {
  return golden_json::load("framework/shrink/golden.json").at(part);
}

IndexTensor labels_from(const Config& list, size_t first, size_t count) {
  const auto all = list.as<std::vector<int64_t>>();
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {Shape{static_cast<int64_t>(count)},
          std::vector<int64_t>(begin, begin + static_cast<std::ptrdiff_t>(count))};
}

// The units of each group that can be cut, numbered within it.
std::vector<std::vector<int64_t>> kept_of_groups(const ModelUnits& units, const KeptUnits& kept) {
  std::vector<std::vector<int64_t>> groups;
  for (const UnitGroup& group : units.groups) {
    if (!group.why_fixed.empty()) continue;
    groups.push_back(kept_indices(group.units, kept));
  }
  return groups;
}

class ShrinkGolden : public testing::Test {
 protected:
  ShrinkGolden() : file_(golden("choices")) {
    register_builtins();
    const auto sizes = file_.at("example").as<std::vector<int64_t>>();
    example_ = Shape(sizes);
    layers_ = model_layers(parse_yaml(file_.required<std::string>("layers"), "layers"));
    model_ = build_model(layers_, example_);
    set_arrays(*model_, file_.at("arrays"));
    model_->eval();
    units_ = std::make_unique<ModelUnits>(*model_, example_);
  }
  Tensor inputs(size_t first, size_t count) const {
    const std::vector<float> all = floats(file_.at("inputs"));
    const auto size = static_cast<size_t>(example_.numel());
    return Tensor::from(
        Shape{static_cast<int64_t>(count), example_[0], example_[1], example_[2]},
        std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(first * size),
                           all.begin() + static_cast<std::ptrdiff_t>((first + count) * size)));
  }
  std::vector<double> scores(const std::string& method) {
    if (method == "magnitude") return magnitude_scores(*units_);
    if (method == "error") {
      return error_scores(*model_, *units_, [&](Module& model) {
        for (const size_t first : {0u, 3u}) model(Variable(inputs(first, 3)));
      });
    }
    return saliency_scores(*model_, *units_,
                           [&](Module& model, const std::function<void()>& after) {
                             for (const size_t first : {0u, 3u}) {
                               backward(cross_entropy(model(Variable(inputs(first, 3))),
                                                      labels_from(file_.at("labels"), first, 3)));
                               after();
                             }
                           });
  }
  KeptUnits choose(const Config& expected) {
    const auto method = expected.required<std::string>("method");
    const ShrinkTarget target = read_shrink_target(expected.at("to"));
    const bool is_magnitude = method == "magnitude";
    const ShrinkOptions options{
        .method = is_magnitude ? ShrinkMethod::Magnitude : ShrinkMethod::Saliency,
        .shares = is_magnitude ? ShrinkShares::Uniform : ShrinkShares::Global};
    const std::vector<ModuleRow> rows = module_rows(*model_, example_);
    const auto cost = [&](const KeptUnits& kept) {
      const UnitsCost all = cost_of(*model_, rows, *units_, kept);
      return target.budget == ShrinkBudget::Flops ? all.flops : all.parameters;
    };
    const double before = cost(without_first(*units_, {}, 0));
    const BudgetSearch search{.target = target.left,
                              .part = [&](const KeptUnits& kept) { return cost(kept) / before; }};
    const std::vector<double> by_unit = scores(method);
    const RoundedChoice choice = choose_rounded(
        *units_, Rounding{.multiple = expected.required<int64_t>("round_to")},
        [&](const std::vector<int64_t>& multiples) {
          return removal_blocks(*units_, rows, by_unit, options, multiples);
        },
        search, 0.9);
    EXPECT_TRUE(choice.kept);
    EXPECT_NEAR(search.part(*choice.kept), expected.required<double>("part"), 1e-9);
    return *choice.kept;
  }

  Config file_;
  Shape example_;
  ModelLayers layers_;
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<ModelUnits> units_;
};

TEST_F(ShrinkGolden, ScoresAreThoseOfTheFormulas) {
  ASSERT_EQ(file_.at("scores").entries().size(), 3u);
  for (const auto& [method, groups] : file_.at("scores").entries()) {
    const std::vector<double> all = scores(method);
    size_t next = 0;
    for (const UnitGroup& group : units_->groups) {
      if (!group.why_fixed.empty()) continue;
      std::vector<float> own;
      for (const int32_t unit : group.units) {
        own.push_back(static_cast<float>(all[static_cast<size_t>(unit)]));
      }
      // Squares of derivatives: twice the error of float32 gradients.
      expect_close(own, floats(groups.items()[next++]), 2e-5f, method + " of " + group.name());
    }
    EXPECT_EQ(next, groups.items().size());
  }
}

TEST_F(ShrinkGolden, UnitsAndOutputsOfSmallerModels) {
  const std::vector<Config> cases = file_.at("cases").items();
  ASSERT_EQ(cases.size(), 5u);
  for (const Config& expected : cases) {
    const KeptUnits kept = choose(expected);
    EXPECT_EQ(kept_of_groups(*units_, kept), lists(expected.at("kept"))) << expected.to_json();
    const Config section =
        Config::map({{"layers", smaller_layers(layers_, *model_, *units_, kept)}});
    const auto smaller = build_model(model_layers(section), example_);
    smaller->load_state_dict(cut_model_state(*model_, *units_, kept));
    smaller->eval();
    expect_close((*smaller)(Variable(inputs(0, 6))).value().to_vector(),
                 floats(expected.at("outputs")), 1e-5f, expected.required<std::string>("method"));
  }
}

TEST(ShrinkHeads, AreRemovedWithTheirQueriesKeysAndValues) {
  register_builtins();
  const Config file = golden("heads");
  const Shape example(file.at("example").as<std::vector<int64_t>>());
  const ModelLayers layers =
      model_layers(parse_yaml(file.required<std::string>("layers"), "layers"));
  const auto model = build_model(layers, example);
  set_arrays(*model, file.at("arrays"));
  const ModelUnits units(*model, example);
  const std::vector<double> all = magnitude_scores(units);
  const std::vector<int32_t>& heads = units.groups.front().units;
  std::vector<float> scores;
  for (const int32_t head : heads) {
    scores.push_back(static_cast<float>(all[static_cast<size_t>(head)]));
  }
  expect_close(scores, floats(file.at("scores")), 1e-6f, "scores");
  const std::vector<int32_t> order =
      removal_order(units, {}, all, {.shares = ShrinkShares::Uniform});
  const KeptUnits kept = without_first(units, order, heads.size() / 2);
  EXPECT_EQ(kept_indices(heads, kept), file.at("kept").as<std::vector<int64_t>>());
  const Config section = Config::map({{"layers", smaller_layers(layers, *model, units, kept)}});
  const auto smaller = build_model(model_layers(section), example);
  smaller->load_state_dict(cut_model_state(*model, units, kept));
  smaller->eval();
  const Tensor inputs = Tensor::from({3, example[0], example[1]}, floats(file.at("inputs")));
  expect_close((*smaller)(Variable(inputs)).value().to_vector(), floats(file.at("outputs")), 1e-5f,
               "outputs");
}

class StructuredGolden {
 public:
  StructuredGolden(const Config& file, const Config& expected)
      : model_(build_model(
            model_layers(parse_yaml("[{type: linear, name: fc1, out_features: 12}, relu, {type: "
                                    "linear, name: fc2, out_features: 10}, relu, {type: linear, "
                                    "name: fc3, out_features: 4}]",
                                    "model")),
            {6})),
        units_(*model_, {6}),
        rows_(module_rows(*model_, {6})),
        inputs_(Tensor::from({16, 6}, floats(file.at("inputs")))),
        labels_(labels_from(file.at("labels"), 0, 16)),
        optimizer_(model_->parameters(), {.lr = file.required<double>("rate")}) {
    set_arrays(*model_, file.at("arrays"));
    const auto last = file.required<int64_t>("last_update");
    const double left = expected.at("to").entries().front().second.as<double>();
    Config entry = Config::map({{"criterion", expected.at("criterion").clone()},
                                {"to", expected.at("to").clone()},
                                {"round_to", expected.at("round_to").clone()},
                                {"layout", "masked"},
                                {"update", Config::map({{"freq", 2}, {"stop", last + 1}})},
                                {"sparsity", Config::map({{"type", "polynomial"},
                                                          {"init", 0.0},
                                                          {"final", 1.0 - left},
                                                          {"start", 0},
                                                          {"end", last}})}});
    if (Structured::calibrates(entry)) entry.set("calibration", 16);
    algorithm_ = Structured::from_config(entry, 0);
    entry.require_all_read();
    algorithm_->calibrate_on({.examples = 16, .run = [&](Module& model, const auto& options) {
                                EXPECT_EQ(options.examples, 16);
                                for (const int64_t first : {0, 10}) {
                                  model(Variable(examples(first, first == 0 ? 10 : 6)));
                                }
                              }});
    dynamic_cast<Structured&>(*algorithm_).use_model(*model_, {6}, rows_);
    model_->apply(*algorithm_);
    optimizer_.apply(*algorithm_);
  }
  void step() {
    backward(cross_entropy((*model_)(Variable(inputs_)), labels_));
    optimizer_.step();
    optimizer_.zero_grad();
  }
  // Units that a weight reads.
  std::vector<std::vector<int64_t>> kept() const {
    std::vector<std::vector<int64_t>> all;
    for (const char* name : {"fc2.weight", "fc3.weight"}) {
      const ParameterPtr weight = model_->parameter(name);
      const ByteArray mask = weight->mask();
      const int64_t columns = weight->shape()[1];
      std::vector<int64_t> own;
      for (int64_t column = 0; column < columns; ++column) {
        bool is_read = false;
        for (int64_t i = column; i < weight->numel(); i += columns) {
          is_read |= mask.values[static_cast<size_t>(i)] != 0;
        }
        if (is_read) own.push_back(column);
      }
      all.push_back(own);
    }
    return all;
  }
  const Sequential& model() const { return *model_; }

 private:
  Tensor examples(int64_t first, int64_t count) const {
    const float* rows = inputs_.data() + first * 6;
    return Tensor::from({count, 6}, std::vector<float>(rows, rows + count * 6));
  }

  std::unique_ptr<Sequential> model_;
  ModelUnits units_;
  std::vector<ModuleRow> rows_;
  Tensor inputs_;
  IndexTensor labels_;
  Sgd optimizer_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;
};

TEST(StructuredTrajectories, MaskTheUnitsOfTheFormulas) {
  register_builtins();
  const Config file = golden("trajectories");
  const std::vector<Config> cases = file.at("cases").items();
  ASSERT_EQ(cases.size(), 7u);
  for (const Config& expected : cases) {
    const std::string what = expected.required<std::string>("criterion") + " to " +
                             expected.at("to").to_json() + ", multiples of " +
                             expected.at("round_to").text();
    StructuredGolden run(file, expected);
    const std::vector<Config> updates = expected.at("updates").items();
    size_t next = 0;
    for (int64_t step = 1; step <= file.required<int64_t>("steps"); ++step) {
      run.step();
      if (next == updates.size() || updates[next].required<int64_t>("step") != step) continue;
      EXPECT_EQ(run.kept(), lists(updates[next++].at("kept"))) << what << ", step " << step;
    }
    EXPECT_EQ(next, updates.size());
    for (const ParameterPtr& parameter : run.model().parameters()) {
      expect_close(parameter->to_dense().to_vector(),
                   floats(expected.at("last").at(parameter->name())), 1e-4f,
                   what + ", " + parameter->name());
    }
  }
}

}  // namespace
}  // namespace lacuna::golden_test
