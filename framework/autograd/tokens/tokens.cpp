#include "lacuna/framework/autograd/tokens/tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/matmul.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/columns.hpp"

namespace lacuna {
namespace {

struct SelectTokenNode final : Node {
  explicit SelectTokenNode(int64_t index_) : index(index_) {}
  std::string_view name() const override { return "select_token"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [batch, features]
    const Shape& shape = inputs()[0].shape();
    Tensor dx = Tensor::zeros(shape);  // dx[:, index] = dy, else 0   [batch, T, features]
    copy_columns({.from = dy.data(),
                  .from_stride = shape[2],
                  .to = dx.mutable_data() + index * shape[2],
                  .to_stride = shape[1] * shape[2],
                  .rows = shape[0],
                  .columns = shape[2]});
    return {dx};
  }

  int64_t index;
};

struct SelectTokensNode final : Node {
  explicit SelectTokensNode(IndexTensor places_) : places(std::move(places_)) {}
  std::string_view name() const override { return "select_tokens"; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [n, features]
    const int64_t features = dy.shape()[1];
    Tensor dx =
        Tensor::zeros(inputs()[0].shape());  // dx[places] = dy, else 0  [batch, T, features]
    const float* from = dy.data();
    for (const int64_t place : places.values()) {
      std::copy_n(from, features, dx.mutable_data() + place * features);
      from += features;
    }
    return {dx};
  }

  IndexTensor places;
};

}  // namespace

Variable select_token(const Variable& x, int64_t index) {
  const Shape& shape = x.shape();
  const int64_t place = shape.rank() == 3 && index < 0 ? index + shape[1] : index;
  if (shape.rank() != 3 || place < 0 || place >= shape[1]) {
    throw ShapeError(
        fmt::format("select_token: needs [batch, T, features] with a token {}, found {}", index,
                    shape.to_string()));
  }
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  Tensor y = Tensor::empty({shape[0], shape[2]});
  copy_columns({.from = rows.data() + place * shape[2],
                .from_stride = shape[1] * shape[2],
                .to = y.mutable_data(),
                .to_stride = shape[2],
                .rows = shape[0],
                .columns = shape[2]});
  return record<SelectTokenNode>(std::move(y), {x}, place);
}

Variable select_tokens(const Variable& x, const IndexTensor& places) {
  const Shape& shape = x.shape();
  if (shape.rank() != 3 || places.shape().rank() != 1) {
    throw ShapeError(
        fmt::format("select_tokens: needs [batch, T, features] and places [n], found {} and {}",
                    shape.to_string(), places.shape().to_string()));
  }
  const int64_t tokens = shape[0] * shape[1], features = shape[2];
  int64_t before = -1;
  for (const int64_t place : places.values()) {
    if (place < 0 || place >= tokens) {
      throw DataError(
          fmt::format("select_tokens: place {} is out of range: the batch has {}, counted from 0",
                      place, plural(tokens, "token")));
    }
    if (place <= before) {
      throw DataError(
          fmt::format("select_tokens: place {} follows {}; places must ascend", place, before));
    }
    before = place;
  }
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  Tensor y = Tensor::empty({places.numel(), features});
  float* into = y.mutable_data();
  for (const int64_t place : places.values()) {
    into = std::copy_n(rows.data() + place * features, features, into);
  }
  return record<SelectTokensNode>(std::move(y), {x}, places);
}

Variable mean_of_tokens(const Variable& x, const IndexTensor& mask) {
  const Shape& shape = x.shape();
  if (shape.rank() != 3 || (mask.defined() && mask.shape() != Shape{shape[0], shape[1]})) {
    throw ShapeError(fmt::format(
        "mean_of_tokens: needs [batch, T, features] and a mask [batch, T], found {} and {}",
        shape.to_string(), mask.defined() ? mask.shape().to_string() : "no mask"));
  }
  Tensor weights = Tensor::zeros({shape[0], 1, shape[1]});  // 1 / number of an example's tokens
  float* row = weights.mutable_data();
  for (int64_t b = 0; b < shape[0]; ++b, row += shape[1]) {
    const auto counts = [&](int64_t t) {
      return !mask.defined() || mask.values()[static_cast<size_t>(b * shape[1] + t)] != 0;
    };
    int64_t tokens = 0;
    for (int64_t t = 0; t < shape[1]; ++t) tokens += counts(t) ? 1 : 0;
    const float share = 1.0f / static_cast<float>(std::max<int64_t>(tokens, 1));
    for (int64_t t = 0; t < shape[1]; ++t) row[t] = counts(t) ? share : 0.0f;
  }
  return reshape(bmm(weights, x), {shape[0], shape[2]});
}

}  // namespace lacuna
