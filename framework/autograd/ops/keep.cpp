#include "lacuna/framework/autograd/ops/keep.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/nm_value.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/pointwise/mask.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

BitMask chosen_of(const KeepFunction& choose, const Tensor& rows) {
  BitMask mask = choose(rows);
  if (mask.size() != rows.numel()) {
    throw ShapeError(fmt::format("a tensor of shape {} cannot be masked by {} bits",
                                 rows.shape().to_string(), mask.size()));
  }
  return mask;
}

Tensor kept_of(const BitMask& mask, const Tensor& rows) {
  Tensor kept = rows.clone();
  select_by_mask(mask, kept.mutable_storage());
  return kept;
}

struct KeepNode final : Node {
  explicit KeepNode(BitMask mask_) : mask(std::move(mask_)) {}
  std::string_view name() const override { return "keep"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {kept_of(mask, reordered(dy, Order::RowMajor))};  // dx = dy at the mask   [...]
  }

  BitMask mask;
};

// Saves only the codes: at 2:4, also one bit per element.
struct KeepNmNode final : Node {
  explicit KeepNmNode(std::shared_ptr<const NmMatrix> matrix_) : matrix(std::move(matrix_)) {}
  std::string_view name() const override { return "keep_nm"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [..., features]
    const Tensor rows = reordered(dy, Order::RowMajor);
    Tensor kept = Tensor::empty(Shape{matrix->form.stored()});
    nm_from_dense(*matrix, rows.data(), kept.mutable_data());
    Tensor dx = Tensor::empty(dy.shape());  // dx = dy in the slots, else 0   [..., features]
    nm_to_dense(*matrix, kept.data(), dx.mutable_data());
    return {dx};
  }

  std::shared_ptr<const NmMatrix> matrix;
};

struct KeepGradientNode final : Node {
  explicit KeepGradientNode(KeepFunction choose_) : choose(std::move(choose_)) {}
  std::string_view name() const override { return "keep_gradient"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    const Tensor rows = reordered(dy, Order::RowMajor);
    return {kept_of(chosen_of(choose, rows), rows)};  // dx = dy at its own mask   [...]
  }

  KeepFunction choose;
};

}  // namespace

Variable keep(const Variable& x, const KeepFunction& choose) {
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  BitMask mask = chosen_of(choose, rows);
  Tensor y = kept_of(mask, rows);
  return record<KeepNode>(std::move(y), {x}, std::move(mask));
}

void require_keep_nm(const std::string& what, const Shape& shape, int dimension, int n, int m) {
  if (n < 1 || n > m || m > PatternShape::kLargestM) {
    throw ConfigError(fmt::format("{}: N:M needs 1 <= N <= M <= {}, found {}:{}", what,
                                  PatternShape::kLargestM, n, m));
  }
  const int64_t features = shape.rank() < 1 ? 0 : shape[dimension];
  if (shape.rank() >= 1 && features % m == 0) return;
  throw ShapeError(fmt::format("{}: activations of shape {} have {} {}, not divisible by m = {}",
                               what, shape.to_string(), features,
                               dimension == -1 ? "features" : "channels", m));
}

Variable keep_nm(const Variable& x, int n, int m) {
  require_keep_nm("keep_nm", x.shape(), -1, n, m);
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  const NmMatrixForm form{.rows = rows.shape().batch(),
                          .columns = rows.shape().features(),
                          .pattern = PatternShape::nm(n, m)};
  const auto matrix = std::make_shared<NmMatrix>();
  Tensor values = Tensor::empty(Shape{form.stored()});
  nm_select_values(form, rows.storage(), *matrix, values.mutable_storage());
  Tensor kept = Tensor::empty(rows.shape());
  nm_to_dense(*matrix, values.data(), kept.mutable_data());
  Variable y = record<KeepNmNode>(std::move(kept), {x}, matrix);
  y.set_nm(std::make_shared<const NmValue>(NmValue{matrix, std::move(values)}));
  return y;
}

Variable keep_gradient(const Variable& x, const KeepFunction& choose) {
  return record<KeepGradientNode>(x.value(), {x}, choose);
}

}  // namespace lacuna
