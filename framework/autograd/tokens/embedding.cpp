#include "lacuna/framework/autograd/tokens/embedding.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/embedding.hpp"

namespace lacuna {
namespace {

EmbeddingProblem problem(const IndexTensor& ids, const Shape& weight,
                         const EmbeddingOptions& options) {
  return {.ids = ids.values().data(),
          .count = ids.numel(),
          .rows = weight[0],
          .features = weight[1],
          .skipped_id = options.padding_id};
}

struct EmbeddingNode final : Node {
  EmbeddingNode(IndexTensor ids_, Shape weight_, EmbeddingOptions options_,
                std::shared_ptr<GradientSink> sink_)
      : ids(std::move(ids_)), weight(weight_), options(options_), sink(std::move(sink_)) {}
  std::string_view name() const override { return "embedding"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., features]
    const EmbeddingProblem p = problem(ids, weight, options);
    if (sink != nullptr) {  // dW[id] = Σ dy of its uses   [vocabulary, features]
      sink->accumulate_computed([&](std::span<float> gradient, Accumulate accumulate) {
        add_rows(p, dy.data(), accumulate, gradient.data());
      });
      return {Tensor()};
    }
    Tensor gradient = Tensor::empty(weight);
    add_rows(p, dy.data(), Accumulate::No, gradient.mutable_data());
    return {gradient};
  }

  IndexTensor ids;
  Shape weight;
  EmbeddingOptions options;
  std::shared_ptr<GradientSink> sink;  // null: the weight is the node's input
};

// "[2, 7]": the place of a flat index.
std::string place_text(const Shape& shape, int64_t flat) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[static_cast<size_t>(i)] = flat % shape[i];
    flat /= shape[i];
  }
  return Shape(place).to_string();
}

void require_ids(const IndexTensor& ids, const Shape& weight) {
  if (weight.rank() != 2) {
    throw ShapeError("embedding: needs ids [...] and a weight [vocabulary, features], found " +
                     ids.shape().to_string() + " and " + weight.to_string());
  }
  const std::span<const int64_t> values = ids.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < weight[0]) continue;
    throw DataError(fmt::format(
        "embedding: id {} at {} is out of range: the vocabulary has {} ids, counted from 0",
        values[i], place_text(ids.shape(), static_cast<int64_t>(i)), weight[0]));
  }
}

Tensor looked_up(const IndexTensor& ids, const Tensor& weight, const EmbeddingOptions& options) {
  const Shape& shape = ids.shape();
  std::vector<int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  sizes.push_back(weight.shape()[1]);
  const Tensor rows = reordered(weight, Order::RowMajor);
  Tensor y = Tensor::empty(Shape(sizes));
  gather_rows(problem(ids, weight.shape(), options), rows.data(), y.mutable_data());
  return y;
}

}  // namespace

Variable embedding(const IndexTensor& ids, const Variable& weight,
                   const EmbeddingOptions& options) {
  require_ids(ids, weight.shape());
  return record<EmbeddingNode>(looked_up(ids, weight.value(), options), {weight}, ids,
                               weight.shape(), options, nullptr);
}

Variable embedding(const IndexTensor& ids, const ParameterPtr& weight,
                   const EmbeddingOptions& options) {
  require_ids(ids, weight->shape());
  const Variable values = Variable::of(weight);  // refuses layouts that do not store every position
  const Variable anchor = weight->trainable ? Variable::leaf(Tensor()) : Variable();
  return record<EmbeddingNode>(looked_up(ids, values.value(), options), {anchor}, ids,
                               weight->shape(), options, std::shared_ptr<GradientSink>(weight));
}

}  // namespace lacuna
