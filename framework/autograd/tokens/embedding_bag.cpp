#include "lacuna/framework/autograd/tokens/embedding_bag.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/weighted_rows.hpp"

namespace lacuna {
namespace {

// The terms of sums, one sum after the other.
struct BagTerms {
  std::vector<int64_t> begin{0}, rows = {};
  std::vector<float> weights = {};

  void add(int64_t row, float weight) {
    rows.push_back(row);
    weights.push_back(weight);
  }
  void end_sum() { begin.push_back(static_cast<int64_t>(rows.size())); }
  WeightedRows problem(int64_t features) const {
    return {.sums = static_cast<int64_t>(begin.size()) - 1,
            .features = features,
            .begin = begin.data(),
            .rows = rows.data(),
            .weights = weights.data()};
  }
};

// The rows that a batch uses, ascending, and both products' terms: examples from used rows, and
// used rows from examples.
struct UsedInBags {
  UsedInBags(const IndexTensor& ids, const Tensor& values) {
    const std::span<const int64_t> all = ids.values();
    const int64_t batch = ids.shape()[0], most = ids.shape()[1];
    std::vector<std::pair<int64_t, int64_t>> uses;  // id and place
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] >= 0) uses.emplace_back(all[i], static_cast<int64_t>(i));
    }
    std::ranges::sort(uses);
    std::vector<int64_t> number(all.size(), -1);  // of the used row, by place
    for (const auto& [id, place] : uses) {
      if (rows.empty() || rows.back() != id) {
        if (!rows.empty()) of_rows.end_sum();
        rows.push_back(id);
      }
      of_rows.add(place / most, values.data()[place]);
      number[static_cast<size_t>(place)] = static_cast<int64_t>(rows.size()) - 1;
    }
    if (!rows.empty()) of_rows.end_sum();
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t place = i * most; place < (i + 1) * most; ++place) {
        const int64_t row = number[static_cast<size_t>(place)];
        if (row >= 0) of_examples.add(row, values.data()[place]);
      }
      of_examples.end_sum();
    }
  }

  std::vector<int64_t> rows;
  BagTerms of_examples, of_rows;
};

struct EmbeddingBagNode final : Node {
  EmbeddingBagNode(UsedInBags used_, ParameterPtr weight_)
      : used(std::move(used_)), weight(std::move(weight_)) {}
  std::string_view name() const override { return "embedding_bag"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [batch, features]
    const WeightedRows problem = used.of_rows.problem(dy.shape()[1]);
    // dW[id] = Σ value dy over its uses   [used rows, features]
    weight->accumulate_rows(used.rows, [&](std::span<float> gradient, Accumulate accumulate) {
      sum_weighted_rows(problem, dy.data(), accumulate, gradient.data());
    });
    return {Tensor()};
  }

  UsedInBags used;
  ParameterPtr weight;
};

void require_bags(const IndexTensor& ids, const Tensor& values, const Shape& weight) {
  if (weight.rank() != 2 || ids.shape().rank() != 2 || ids.shape() != values.shape()) {
    throw ShapeError(
        fmt::format("embedding_bag: needs ids and values [batch, most] and a weight [rows, "
                    "features], found {}, "
                    "{} and {}",
                    ids.shape().to_string(), values.shape().to_string(), weight.to_string()));
  }
  for (int64_t i = 0; i < ids.numel(); ++i) {
    const int64_t id = ids.values()[static_cast<size_t>(i)];
    if (id >= -1 && id < weight[0]) continue;
    throw DataError(
        fmt::format("embedding_bag: id {} of example {} is out of range: the weight has {} rows, "
                    "counted from 0",
                    id, i / ids.shape()[1], weight[0]));
  }
}

}  // namespace

Variable embedding_bag(const IndexTensor& ids, const Tensor& values, const ParameterPtr& weight) {
  require_bags(ids, values, weight->shape());
  UsedInBags used(ids, reordered(values, Order::RowMajor));
  const int64_t features = weight->shape()[1];
  Tensor table = Tensor::empty(Shape{static_cast<int64_t>(used.rows.size()), features});
  weight->read_rows(used.rows, table.mutable_storage());
  Tensor y = Tensor::empty(Shape{ids.shape()[0], features});
  sum_weighted_rows(used.of_examples.problem(features), table.data(), Accumulate::No,
                    y.mutable_data());
  const Variable anchor = weight->trainable ? Variable::leaf(Tensor()) : Variable();
  return record<EmbeddingBagNode>(std::move(y), {anchor}, std::move(used), weight);
}

}  // namespace lacuna
