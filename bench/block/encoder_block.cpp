#include "block/encoder_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "common/dense_opponent.h"
#include "common/encoder_layers.h"
#include "common/operands.h"
#include "common/operations.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/sparsity/configure.h"

namespace lacuna::bench {
namespace {

std::vector<ParameterPtr> weights_of(const Module& model) {
  std::vector<ParameterPtr> weights;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use == WeightUse::Linear) weights.push_back(parameter);
  }
  return weights;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

EncoderBlock::EncoderBlock(const BlockSize& size, const BlockStorage& storage) {
  const Config section =
      parse_yaml(encoder_layers(size.features, size.hidden, size.heads), "block");
  model_ = build_model(model_layers(section), Shape{size.tokens, size.features});
  model_->initialize(0);
  if (storage.section.empty()) return;
  Config sparsity = parse_yaml(storage.section, "sparsity");
  std::vector<std::string> names;
  for (const ParameterPtr& weight : weights_of(*model_)) names.push_back(weight->name());
  sparsity.set("param_filter", Config::from_value(names));
  sparsity.set("layout", storage.layout);
  algorithm_ = configure(sparsity, 0);
  algorithm_->compression().batch = size.examples * size.tokens;
  model_->apply(*algorithm_);
}

void EncoderBlock::forward(const Tensor& x) {
  seconds_.emplace_back();
  const Clock::time_point start = Clock::now();
  input_ = Variable::leaf(x);
  output_ = (*model_)(input_);
  seconds_.back()["forward"] = seconds_since(start);
}

void EncoderBlock::backward(const Tensor& dy) {
  auto& seconds = seconds_.back();
  const BackwardTrace trace(
      [&](const NodeRun& node) { seconds["backward " + node.name] += node.seconds; });
  for (const ParameterPtr& parameter : model_->parameters()) parameter->zero_gradient();
  lacuna::backward(output_, dy);
}

std::map<std::string, double> EncoderBlock::ms_by_kind() const {
  std::map<std::string, std::vector<double>> samples;
  for (size_t pass = seconds_.size() > 1 ? 1 : 0; pass < seconds_.size(); ++pass) {
    for (const auto& [kind, seconds] : seconds_[pass]) samples[kind].push_back(1e3 * seconds);
  }
  std::map<std::string, double> medians;
  for (auto& [kind, values] : samples) medians[kind] = median(std::move(values));
  return medians;
}

double EncoderBlock::operations(bool with_backward) const {
  const Shape& batch = input_.shape();
  return operations_of(*model_, batch.without_batch(), batch[0],
                       with_backward ? Extent::Training : Extent::Forward);
}

std::string EncoderBlock::stored() const {
  std::map<std::string, int> counts;
  int all = 0;
  for (const ParameterPtr& weight : weights_of(*model_)) {
    ++counts[std::string(weight->pattern()->layout().name())];
    ++all;
  }
  const auto& [layout, count] = *counts.begin();
  return count == all ? layout : fmt::format("{} in {} of {}", layout, count, all);
}

BlockProducts::BlockProducts(const BlockSize& size) {
  const int64_t rows = size.examples * size.tokens, d = size.features / size.heads;
  const auto add = [&](const std::string& name, int64_t batch, int64_t in, int64_t out,
                       int64_t times) {
    products_.push_back({.x = random_tensor({batch, in}, name + " x"),
                         .weight = random_tensor({out, in}, name + " w"),
                         .y = random_tensor({batch, out}, name + " y"),
                         .dx = Tensor::empty({batch, in}),
                         .dw = Tensor::empty({out, in}),
                         .times = times});
  };
  add("projection", rows, size.features, size.features, 4);
  add("up", rows, size.features, size.hidden, 1);
  add("down", rows, size.hidden, size.features, 1);
  add("scores", size.tokens, d, size.tokens, size.examples * size.heads);
  add("values", size.tokens, size.tokens, d, size.examples * size.heads);
}

void BlockProducts::forward() {
  for (Product& p : products_) {
    for (int64_t i = 0; i < p.times; ++i) opponent_forward(p.x, p.weight, p.y);
  }
}

void BlockProducts::backward() {
  for (Product& p : products_) {
    for (int64_t i = 0; i < p.times; ++i) {
      opponent_input_gradient(p.y, p.weight, p.dx);
      opponent_weight_gradient(p.y, p.x, p.dw);
    }
  }
}

}  // namespace lacuna::bench
