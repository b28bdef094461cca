#include "lacuna/framework/autograd/ops/concatenate.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/kernels/rowwise/columns.h"

namespace lacuna {
namespace {

// Elements from one index of the dimension before `dimension` to the next.
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

struct ConcatenateNode final : Node {
  explicit ConcatenateNode(int dimension_) : dimension(dimension_) {}
  std::string_view name() const override { return "concatenate"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., Σ n, ...]
    const int64_t stride = row_of(dy.shape(), dimension);
    std::vector<Tensor> gradients(inputs().size());
    int64_t begin = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Shape& shape = inputs()[i].shape();  // dx = its part of dy   [..., n, ...]
      const int64_t width = row_of(shape, dimension);
      if (needs(i)) {
        gradients[i] = Tensor::empty(shape);
        copy_columns({.from = dy.data() + begin,
                      .from_stride = stride,
                      .to = gradients[i].mutable_data(),
                      .to_stride = width,
                      .rows = rows_of(shape, dimension),
                      .columns = width});
      }
      begin += width;
    }
    return gradients;
  }

  int dimension;
};

// The dimension counted from the front, and the shape of all together.
std::pair<int, Shape> joined_shape(std::span<const Variable> inputs, int dimension) {
  if (inputs.empty()) throw ShapeError("concatenate: needs at least one input");
  const Shape& first = inputs.front().shape();
  const int index = dimension < 0 ? dimension + first.rank() : dimension;
  if (index < 0 || index >= first.rank()) {
    throw ShapeError(
        fmt::format("concatenate: dimension {} of shape {}", dimension, first.to_string()));
  }
  std::vector<int64_t> sizes(first.sizes().begin(), first.sizes().end());
  for (const Variable& input : inputs.subspan(1)) {
    const Shape& shape = input.shape();
    bool fits = shape.rank() == first.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) fits = i == index || shape[i] == first[i];
    if (!fits) {
      throw ShapeError(fmt::format("concatenate: shapes {} and {} differ besides dimension {}",
                                   first.to_string(), shape.to_string(), index));
    }
    sizes[static_cast<size_t>(index)] += shape[index];
  }
  return {index, Shape(sizes)};
}

}  // namespace

Variable concatenate(std::span<const Variable> inputs, int dimension) {
  const auto [index, shape] = joined_shape(inputs, dimension);
  Tensor y = Tensor::empty(shape);
  const int64_t stride = row_of(shape, index);
  int64_t begin = 0;
  for (const Variable& input : inputs) {
    const Tensor x = reordered(input.value(), Order::RowMajor);
    const int64_t width = row_of(x.shape(), index);
    copy_columns({.from = x.data(),
                  .from_stride = width,
                  .to = y.mutable_data() + begin,
                  .to_stride = stride,
                  .rows = rows_of(shape, index),
                  .columns = width});
    begin += width;
  }
  return record<ConcatenateNode>(std::move(y), {inputs.begin(), inputs.end()}, index);
}

}  // namespace lacuna
