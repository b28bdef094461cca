// Dead units, their constant outputs, and what is left of weights, masks and optimizer states,
// against golden_dead.json, which golden_dead.py computes with NumPy alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/onnx/onnx_models.h"
#include "golden_json.h"
#include "lacuna/framework/shrink/cut_state.hpp"
#include "lacuna/framework/shrink/fold_constants.hpp"
#include "lacuna/framework/shrink/smaller_model.hpp"
#include "lacuna/framework/shrink/unit_scores.hpp"

namespace lacuna::golden_dead_test {
namespace {

using golden_json::expect_close;
using golden_json::floats;

class DeadGolden : public testing::TestWithParam<const Layout*> {
 protected:
  DeadGolden() : file_(golden_json::load("framework/shrink/golden_dead.json")) {
    register_builtins();
    example_ = Shape(file_.at("example").as<std::vector<int64_t>>());
    layers_ = model_layers(parse_yaml(file_.required<std::string>("layers"), "layers"));
    model_ = build_model(layers_, example_);
    golden_json::set_arrays(*model_, file_.at("arrays"));
    for (const auto& [name, mask] : file_.at("masks").entries()) {
      const ParameterPtr weight = model_->parameter(name);
      weight->set_pattern(
          Pattern::make(*GetParam(), weight->shape(), BitMask::from_bytes(bits(mask))));
    }
    units_ = std::make_unique<ModelUnits>(*model_, example_);
    model_->eval();
  }
  static std::vector<uint8_t> bits(const Config& list) {
    const auto values = list.as<std::vector<int64_t>>();
    return {values.begin(), values.end()};
  }
  Tensor inputs(size_t first, size_t count) const {
    const std::vector<float> all = floats(file_.at("inputs"));
    const auto size = static_cast<std::ptrdiff_t>(example_.numel());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first) * size;
    return Tensor::from(
        Shape{static_cast<int64_t>(count), example_[0], example_[1], example_[2]},
        std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count) * size));
  }
  std::vector<float> outputs(Module& model) const {
    return model(Variable(inputs(0, 5))).value().to_vector();
  }
  // As an optimizer saves them: of compressed weights the nonzeros alone.
  StateDict saved_states() const {
    StateDict saved;
    saved.set("type", std::string("sgd"));
    saved.set("step", int64_t{7});
    for (const auto& [name, values] : file_.at("states").entries()) {
      const ParameterPtr parameter = model_->parameter(name);
      std::vector<float> state = floats(values);
      Shape shape = parameter->shape();
      if (!parameter->pattern()->stores_every_position()) {
        const std::vector<uint8_t> mask = bits(file_.at("masks").at(name));
        size_t place = 0;
        std::erase_if(state, [&](float) { return mask[place++] == 0; });
        shape = Shape{static_cast<int64_t>(state.size())};
      }
      saved.set(name + "/momentum_buffer", Tensor::from(shape, state));
      saved.set(name + "/step", int64_t{7});
    }
    return saved;
  }

  Config file_;
  Shape example_;
  ModelLayers layers_;
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<ModelUnits> units_;
};

TEST_P(DeadGolden, UnitsConstantsAndStatesAreThoseOfTheFormulas) {
  expect_close(outputs(*model_), floats(file_.at("before")), 1e-5f, "outputs before");
  const KeptUnits kept = living_units(*units_);
  std::vector<std::vector<int64_t>> living, expected;
  for (const UnitGroup& group : units_->groups) {
    if (group.why_fixed.empty()) living.push_back(kept_indices(group.units, kept));
  }
  for (const auto& [name, units] : file_.at("kept").entries()) {
    expected.push_back(units.as<std::vector<int64_t>>());
  }
  EXPECT_EQ(living, expected);

  const std::vector<std::string> without =
      fold_constants(*model_, example_, *units_, kept, [&](Module& model) {
        model(Variable(inputs(0, 3)));
        model(Variable(inputs(3, 2)));
      });
  EXPECT_EQ(without, std::vector<std::string>{});
  const StateDict state = cut_model_state(*model_, *units_, kept);
  for (const auto& [name, values] : file_.at("smaller").entries()) {
    std::string key = name;
    if (key.find("running") != std::string::npos) key[key.rfind('.')] = '/';
    expect_close(state.get<Tensor>(key).to_vector(), floats(values), 1e-6f, name);
  }
  for (const auto& [name, mask] : file_.at("smaller_masks").entries()) {
    EXPECT_EQ(state.get<ByteArray>(name + "_mask").values, bits(mask)) << name;
  }
  const StateDict states = cut_optimizer_state(saved_states(), *model_, *units_, kept);
  EXPECT_EQ(states.get<int64_t>("step"), 0);
  EXPECT_EQ(states.get<int64_t>("earlier_steps"), 7);
  for (const auto& [name, values] : file_.at("smaller_states").entries()) {
    EXPECT_EQ(states.get<Tensor>(name + "/momentum_buffer").to_vector(), floats(values)) << name;
    EXPECT_EQ(states.get<int64_t>(name + "/step"), 7) << name;
  }

  const Config section = Config::map({{"layers", smaller_layers(layers_, *model_, *units_, kept)}});
  const auto smaller = build_model(model_layers(section), example_);
  smaller->load_state_dict(state);
  smaller->eval();
  expect_close(outputs(*smaller), floats(file_.at("after")), 1e-5f, "outputs after");
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeadGolden, testing::Values(&masked_layout(), &csr_layout()),
                         [](const auto& test) { return std::string(test.param->name()); });

}  // namespace
}  // namespace lacuna::golden_dead_test
