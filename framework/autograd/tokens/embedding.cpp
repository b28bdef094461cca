#include "lacuna/framework/autograd/tokens/embedding.h"

#include <fmt/core.h>

#include <algorithm>
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

// Whether the rows that are used are all that a parameter is to be given.
bool takes_rows(const Parameter& parameter) {
  return parameter.sparse_gradient || !parameter.pattern()->stores_every_position();
}

// The rows that get a gradient, ascending, and the place of each id among them.
struct UsedRows {
  explicit UsedRows(const EmbeddingProblem& p) : places(static_cast<size_t>(p.count)) {
    std::vector<std::pair<int64_t, int64_t>> order;  // id and place
    order.reserve(places.size());
    for (int64_t i = 0; i < p.count; ++i) order.emplace_back(p.ids[i], i);
    std::ranges::sort(order);
    for (const auto& [id, i] : order) {
      if (rows.empty() || rows.back() != id) rows.push_back(id);
      places[static_cast<size_t>(i)] = static_cast<int64_t>(rows.size()) - 1;
    }
    const auto skipped = std::ranges::lower_bound(rows, p.skipped_id);
    if (skipped == rows.end() || *skipped != p.skipped_id) return;
    // Its places go to one that is past the others, which nobody looks at.
    const int64_t at = skipped - rows.begin();
    rows.erase(skipped);
    for (int64_t& place : places) {
      if (place == at) {
        place = static_cast<int64_t>(rows.size());
      } else if (place > at) {
        --place;
      }
    }
  }
  std::vector<int64_t> rows, places;
};

struct EmbeddingNode final : Node {
  EmbeddingNode(IndexTensor ids_, Shape weight_, EmbeddingOptions options_, ParameterPtr parameter_)
      : ids(std::move(ids_)),
        weight(weight_),
        options(options_),
        parameter(std::move(parameter_)) {}
  std::string_view name() const override { return "embedding"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., features]
    const EmbeddingProblem p = problem(ids, weight, options);
    if (parameter != nullptr && takes_rows(*parameter)) {
      const UsedRows used(p);
      const auto count = static_cast<int64_t>(used.rows.size());
      const EmbeddingProblem of_rows{.ids = used.places.data(),
                                     .count = p.count,
                                     .rows = count,
                                     .features = p.features,
                                     .skipped_id = count};
      parameter->accumulate_rows(used.rows, [&](std::span<float> gradient, Accumulate accumulate) {
        add_rows(of_rows, dy.data(), accumulate, gradient.data());
      });
      return {Tensor()};
    }
    if (parameter != nullptr) {  // dW[id] = Σ dy of its uses   [vocabulary, features]
      parameter->accumulate_computed([&](std::span<float> gradient, Accumulate accumulate) {
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
  ParameterPtr parameter;  // null: the weight is the node's input
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

Shape shape_of_rows(const IndexTensor& ids, const Shape& weight) {
  std::vector<int64_t> sizes(ids.shape().sizes().begin(), ids.shape().sizes().end());
  sizes.push_back(weight[1]);
  return Shape(sizes);
}

Tensor looked_up(const IndexTensor& ids, const Tensor& weight, const EmbeddingOptions& options) {
  const Tensor rows = reordered(weight, Order::RowMajor);
  Tensor y = Tensor::empty(shape_of_rows(ids, weight.shape()));
  gather_rows(problem(ids, weight.shape(), options), rows.data(), y.mutable_data());
  return y;
}

// Of a parameter; one that another layer is tied to may be stored in any layout.
Tensor looked_up(const IndexTensor& ids, const ParameterPtr& weight,
                 const EmbeddingOptions& options) {
  if (!weight->is_linear_weight() || weight->pattern()->stores_every_position()) {
    // Variable::of refuses layouts that lack positions.
    return looked_up(ids, Variable::of(weight).value(), options);
  }
  Tensor y = Tensor::empty(shape_of_rows(ids, weight->shape()));
  weight->read_rows(ids.values(), y.mutable_storage());
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
  const Variable anchor = weight->trainable ? Variable::leaf(Tensor()) : Variable();
  return record<EmbeddingNode>(looked_up(ids, weight, options), {anchor}, ids, weight->shape(),
                               options, weight);
}

}  // namespace lacuna
