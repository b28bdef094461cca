#include "lacuna/framework/autograd/ops/linear_sparse_input.hpp"

#include <memory>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/nm_value.hpp"
#include "lacuna/framework/kernels/nm/nm_activations.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"

namespace lacuna {
namespace {

int64_t slabs_size(const WeightReference& weight) {
  return output_slabs_size(weight.pattern->shape()[0], weight.pattern->shape()[1]);
}

// The weight in slabs of outputs: the three products of a step share them, and evaluation makes
// them only once.
std::span<const float> output_slabs(const WeightReference& weight, DerivedValues& own) {
  return refreshed(weight.view(), slabs_size(weight), own, [&](float* into) {
    const Shape& shape = weight.pattern->shape();
    weight_to_output_slabs(weight.values.data(), shape[0], shape[1], into);
  });
}

// Y = X Wᵀ + bias; also writes the slabs if they are out of date.
Tensor product(const NmValue& x, const Shape& shape, const WeightReference& weight,
               const Tensor& bias) {
  DerivedValues own;
  DerivedValues& slabs = weight.derived == nullptr ? own : *weight.derived;
  const bool is_fresh = slabs.array.defined() && slabs.version == weight.version;
  if (!slabs.array.defined()) slabs.array = Tensor::empty(Shape{slabs_size(weight)});
  const int64_t out = weight.pattern->shape()[0];
  Tensor y = Tensor::empty(shape.with_features(out));
  nm_activation_product(
      *x.matrix, x.values.data(),
      {.slabs = slabs.array.mutable_data(), .rows = is_fresh ? nullptr : weight.values.data()}, out,
      bias.defined() ? bias.data() : nullptr, y.mutable_data());
  slabs.version = weight.version;
  return y;
}

// As in linear's node, the weight is represented by a variable without a value.
struct LinearSparseInputNode final : Node {
  LinearSparseInputNode(const NmValue& x, Shape shape, WeightReference weight_)
      : matrix(x.matrix), values(x.values), x_shape(shape), weight(std::move(weight_)) {}

  std::string_view name() const override { return "linear_sparse_input"; }
  std::vector<Tensor*> saved() override { return {&values}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., out]
    const int64_t batch = matrix->form.rows, out = dy.shape().features();
    Tensor slabs;
    if (needs(0) || weight.sink != nullptr) {
      slabs = Tensor::empty(Shape{output_slabs_size(out, batch)});
      rows_to_output_slabs(dy.data(), batch, out, slabs.mutable_data());
    }
    std::vector<Tensor> gradients(3);
    if (needs(0)) gradients[0] = input_gradient(slabs, out);  // dX = dY W in x's slots  [..., in]
    if (needs(1)) gradients[1] = sum_rows(dy);                // db = Σ dY                   [out]
    if (weight.sink != nullptr) accumulate_weight_gradient(slabs, out);  // dW = dYᵀ X   [out, in]
    return gradients;
  }

  Tensor input_gradient(const Tensor& dy_slabs, int64_t out) const {
    weight.require_unchanged();
    DerivedValues own;
    Tensor in_slots = Tensor::empty(values.shape());
    nm_activation_input_gradient(*matrix, dy_slabs.data(), output_slabs(weight, own).data(), out,
                                 in_slots.mutable_data());
    Tensor dx = Tensor::empty(x_shape);
    nm_to_dense(*matrix, in_slots.data(), dx.mutable_data());
    return dx;
  }

  void accumulate_weight_gradient(const Tensor& dy_slabs, int64_t out) const {
    Tensor x = Tensor::empty(x_shape);
    nm_to_dense(*matrix, values.data(), x.mutable_data());
    weight.sink->accumulate_computed([&](std::span<float> gradient, Accumulate accumulate) {
      nm_activation_weight_gradient(x.data(), matrix->form.rows, matrix->form.columns,
                                    dy_slabs.data(), out, accumulate, gradient.data());
    });
  }

  std::shared_ptr<const NmMatrix> matrix;
  Tensor values;
  Shape x_shape;
  WeightReference weight;
};

// At 2:4, with the selection forward and backward, sparse products from these sizes on are 1.2 to
// 1.7 times faster than dense ones with one thread, 0.93 (32 examples, 256 to 256) to 1.6 times
// with two (AMD Zen 4; docs/development/performance-log.md). With fewer outputs, a second thread
// has too little work; with fewer examples, converting the weight to slabs costs too much.
constexpr int64_t kLeastBatch = 32, kLeastIn = 64, kLeastOut = 128;

}  // namespace

bool linear_sparse_input_pays(const Variable& x, const WeightReference& weight) {
  if (x.nm() == nullptr || !weight.pattern->is_dense()) return false;
  const NmMatrixForm& form = x.nm()->matrix->form;
  const Shape& shape = weight.pattern->shape();
  return 2 * form.slots() <= form.m() && form.rows >= kLeastBatch && shape[0] >= kLeastOut &&
         shape[1] >= kLeastIn;
}

Variable linear_sparse_input(const Variable& x, const WeightReference& weight,
                             const Variable& bias) {
  Tensor y = product(*x.nm(), x.shape(), weight, bias.defined() ? bias.value() : Tensor());
  const Variable anchor = weight.sink != nullptr ? Variable::leaf(Tensor()) : Variable();
  return record<LinearSparseInputNode>(std::move(y), {x, bias, anchor}, *x.nm(), x.shape(), weight);
}

}  // namespace lacuna
