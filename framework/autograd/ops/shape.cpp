#include "lacuna/framework/autograd/ops/shape.h"

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

struct ReshapeNode final : Node {
  std::string_view name() const override { return "reshape"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [shape]
    return {dy.reshape(inputs()[0].shape())};                // dx = dy   [x]
  }
};

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  return record<ReshapeNode>(x.value().reshape(shape), {x});
}

Variable flatten(const Variable& x) {
  if (x.shape().rank() < 1) {
    throw ShapeError("flatten: needs [batch, ...], found a scalar " + x.shape().to_string());
  }
  return reshape(x, {x.shape()[0], x.shape().without_batch().numel()});
}

}  // namespace lacuna
