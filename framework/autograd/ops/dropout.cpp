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

Tensor apply(const DropoutMask& mask, const Tensor& input) {
  // A draw belongs to a place in row-major order or in slabs of the batch.
  const Tensor x = is_of_images(input.order()) ? reordered(input, Order::RowMajor) : input;
  Tensor y = Tensor::empty(x.shape(), x.order());
  dropout(mask, x, y);
  return y;
}

struct DropoutNode final : Node {
  explicit DropoutNode(const DropoutMask& mask_) : mask(mask_) {}
  std::string_view name() const override { return "dropout"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {apply(mask, dy)};                                // dx = mask dy   [...]
  }

  DropoutMask mask;
};

}  // namespace

Variable dropout(const Variable& x, double p, const CounterRng& rng, int64_t first_example) {
  if (!(p >= 0.0 && p < 1.0)) {
    throw ConfigError(fmt::format("dropout: p must be in [0, 1), found {:f}", p));
  }
  const int64_t examples = x.shape().rank() > 0 ? std::max<int64_t>(x.shape()[0], 1) : 1;
  const int64_t rows = x.shape().batch() / examples;  // of an example
  const DropoutMask mask{.rng = rng, .p = p, .first_row = first_example * rows};
  return record<DropoutNode>(apply(mask, x.value()), {x}, mask);
}

}  // namespace lacuna
