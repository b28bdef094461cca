#include "lacuna/framework/autograd/ops/concatenate.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/parts.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/columns.hpp"

namespace lacuna {
namespace {

// Number of elements from one index of the dimension before `dimension` to the next.
int64_t row_of(const Shape& shape, int dimension) {
  int64_t numel = 1;
  for (int i = dimension; i < shape.rank(); ++i) numel *= shape[i];
  return numel;
}

int64_t rows_of(const Shape& shape, int dimension) {
  int64_t rows = 1;
  for (int i = 0; i < dimension; ++i) rows *= shape[i];
  return rows;
}

// The concatenated rows: of one index of the dimensions before `dimension`, or whole slabs of the
// batch, whose features are consecutive like those of a row.
struct Rows {
  Rows(const Tensor& x, int dimension)
      : count(rows_of(x.shape(), dimension)), width(row_of(x.shape(), dimension)) {
    if (x.order() != Order::BatchSlabs) return;
    count = (count + kSlabWidth - 1) / kSlabWidth;
    width *= kSlabWidth;
  }

  int64_t count, width;
};

struct ConcatenateNode final : Node {
  ConcatenateNode(int dimension_, Order order_) : dimension(dimension_), order(order_) {}
  std::string_view name() const override { return "concatenate"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, order);  // dy [..., Σ n, ...]
    const int64_t stride = Rows(dy, dimension).width;
    std::vector<Tensor> gradients(inputs().size());
    int64_t begin = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      Tensor dx = Tensor::empty(inputs()[i].shape(), order);  // its part of dy   [..., n, ...]
      const Rows rows(dx, dimension);
      if (needs(i)) {
        copy_columns({.from = dy.data(order) + begin,
                      .from_stride = stride,
                      .to = dx.mutable_data(order),
                      .to_stride = rows.width,
                      .rows = rows.count,
                      .columns = rows.width});
        gradients[i] = dx;
      }
      begin += rows.width;
    }
    return gradients;
  }

  int dimension;
  Order order;
};

// The dimension counted from the front, and the resulting shape.
std::pair<int, Shape> joined_shape(std::span<const Variable> inputs, int dimension) {
  if (inputs.empty()) throw ShapeError("concatenate: needs at least one input");
  const Shape& first = inputs.front().shape();
  const int index = dimension < 0 ? dimension + first.rank() : dimension;
  if (index < 0 || index >= first.rank()) {
    throw ShapeError(fmt::format("concatenate: there is no dimension {} in shape {}", dimension,
                                 first.to_string()));
  }
  std::vector<int64_t> sizes(first.sizes().begin(), first.sizes().end());
  for (const Variable& input : inputs.subspan(1)) {
    const Shape& shape = input.shape();
    bool fits = shape.rank() == first.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) fits = i == index || shape[i] == first[i];
    if (!fits) {
      throw ShapeError(
          fmt::format("concatenate: shapes {} and {} differ in a dimension other than {}",
                      first.to_string(), shape.to_string(), index));
    }
    sizes[static_cast<size_t>(index)] += shape[index];
  }
  return {index, Shape(sizes)};
}

}  // namespace

namespace {

Variable concatenated_now(std::span<const Variable> inputs, int index, const Shape& shape) {
  const bool are_slabs = std::ranges::all_of(
      inputs, [](const Variable& x) { return x.value().order() == Order::BatchSlabs; });
  const Order order = are_slabs && index == shape.rank() - 1 ? Order::BatchSlabs : Order::RowMajor;
  Tensor y = Tensor::empty(shape, order);
  const int64_t stride = Rows(y, index).width;
  int64_t begin = 0;
  for (const Variable& input : inputs) {
    const Tensor x = reordered(input.value(), order);
    const Rows rows(x, index);
    copy_columns({.from = x.data(order),
                  .from_stride = rows.width,
                  .to = y.mutable_data(order) + begin,
                  .to_stride = stride,
                  .rows = rows.count,
                  .columns = rows.width});
    begin += rows.width;
  }
  return record<ConcatenateNode>(std::move(y), {inputs.begin(), inputs.end()}, index, order);
}

struct DeferredConcatenation final : DeferredValue {
  DeferredConcatenation(std::vector<Variable> inputs_, int index_, Shape shape_)
      : inputs(std::move(inputs_)), index(index_), shape(std::move(shape_)) {}
  Variable compute() override { return concatenated_now(inputs, index, shape); }

  std::vector<Variable> inputs;
  int index;
  Shape shape;
};

}  // namespace

Variable concatenate(std::span<const Variable> inputs, int dimension) {
  const auto [index, shape] = joined_shape(inputs, dimension);
  if (shape.rank() != 3 || index != 2) return concatenated_now(inputs, index, shape);
  return Variable::deferred(shape,
                            std::make_shared<DeferredConcatenation>(
                                std::vector<Variable>(inputs.begin(), inputs.end()), index, shape));
}

std::vector<Variable> parts_of(const Variable& x) {
  const auto* deferred = dynamic_cast<const DeferredConcatenation*>(x.deferred_value().get());
  return deferred == nullptr ? std::vector<Variable>() : deferred->inputs;
}

}  // namespace lacuna
