#include "lacuna/framework/autograd/ops/dropout.h"

#include <fmt/core.h>

#include <algorithm>

#include <string>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/dropout.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// Draws depend on the place in row-major order or in slabs of the batch.
Tensor in_order_of_draws(const Tensor& x) {
  return is_of_images(x.order()) ? reordered(x, Order::RowMajor) : x;
}

struct DropoutNode final : Node {
  DropoutNode(const DropoutMask& mask_, KeptBits kept_, Order order_)
      : mask(mask_), kept(std::move(kept_)), order(order_) {}
  std::string_view name() const override { return "dropout"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    const Tensor given = dy.order() == order ? dy : reordered(dy, order);
    Tensor dx = Tensor::empty(given.shape(), order);
    dropout_again(mask, kept, given, dx);  // dx = mask dy   [...]
    return {dx};
  }

  DropoutMask mask;
  KeptBits kept;
  Order order;
};

}  // namespace

Variable dropout(const Variable& x, double p, const CounterRng& rng, int64_t first_example) {
  if (!(p >= 0.0 && p < 1.0)) {
    throw ConfigError(fmt::format("dropout: p must be in [0, 1), found {:f}", p));
  }
  const int64_t examples = x.shape().rank() > 0 ? std::max<int64_t>(x.shape()[0], 1) : 1;
  const int64_t rows = x.shape().batch() / examples;  // per example
  const DropoutMask mask{.rng = rng, .p = p, .first_row = first_example * rows};
  const Tensor given = in_order_of_draws(x.value());
  Tensor y = Tensor::empty(given.shape(), given.order());
  KeptBits kept = dropout(mask, given, y);
  return record<DropoutNode>(y, {x}, mask, std::move(kept), given.order());
}

}  // namespace lacuna
