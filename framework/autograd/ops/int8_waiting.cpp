#include "lacuna/framework/autograd/ops/int8_waiting.hpp"

#include <utility>

#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {

Order order_of_floats(Int8Order order) {
  if (order == Int8Order::Slabs) return Order::BatchSlabs;
  return order == Int8Order::Images ? Order::ImageSlabs : Order::RowMajor;
}

WaitingInt8::WaitingInt8(Int8ValuesPtr input, const Shape& shape, Int8Order order,
                         const std::vector<float>& scales, const std::vector<float>& bias)
    : input_(std::move(input)), shape_(shape), order_(order), scales_(scales), bias_(&bias) {
  if (!input_->example_scales.empty()) return;
  for (float& scale : scales_) scale *= input_->grid.scale;
}

Int8Epilogue WaitingInt8::epilogue() const {
  const bool is_dynamic = !input_->example_scales.empty();
  return {.scales = scales_.data(),
          .bias = bias_->empty() ? nullptr : bias_->data(),
          .zero = input_->grid.zero,
          .example_scales = is_dynamic ? input_->example_scales.data() : nullptr,
          .example_zeros = is_dynamic ? input_->example_zeros.data() : nullptr,
          .activation = activation_,
          .residual = residual_.defined() ? residual_.data(order_of_floats(order_)) : nullptr,
          .rectifies_sum = rectifies_sum_};
}

Variable WaitingInt8::compute() {
  if (value_.defined()) return value_;
  const Order order = order_of_floats(order_);
  Tensor y = Tensor::empty(shape_, order);
  Int8Epilogue epilogue = this->epilogue();
  epilogue.floats = y.mutable_data(order);
  run(epilogue);
  if (order == Order::BatchSlabs) y.clear_padding();
  return y;
}

Int8ValuesPtr WaitingInt8::bytes(const Int8Grid& grid) {
  if (bytes_ != nullptr && bytes_->grid == grid) return bytes_;
  auto values = std::make_shared<Int8Values>();
  values->grid = grid;
  values->bytes.resize(static_cast<size_t>(byte_count()));
  Int8Epilogue epilogue = this->epilogue();
  epilogue.bytes = values->bytes.data();
  epilogue.grid = grid;
  if (residual_.defined() && !value_.defined()) {
    value_ = Tensor::empty(shape_, order_of_floats(order_));
    epilogue.floats = value_.mutable_data(order_of_floats(order_));
  }
  run(epilogue);
  if (epilogue.floats != nullptr && order_ == Int8Order::Slabs) value_.clear_padding();
  bytes_ = values;
  return values;
}

bool WaitingInt8::takes_activation(Int8Activation activation) const {
  if (rectifies_sum_) return false;
  if (residual_.defined()) return activation == Int8Activation::ReLU;
  return activation_ == Int8Activation::None;
}

std::shared_ptr<WaitingInt8> WaitingInt8::with(Int8Activation activation) const {
  std::shared_ptr<WaitingInt8> product = copy();
  product->value_ = Tensor();
  product->bytes_ = nullptr;
  if (residual_.defined()) {
    product->rectifies_sum_ = true;
  } else {
    product->activation_ = activation;
  }
  return product;
}

std::shared_ptr<WaitingInt8> WaitingInt8::with(const Tensor& residual) const {
  std::shared_ptr<WaitingInt8> product = copy();
  product->value_ = Tensor();
  product->bytes_ = nullptr;
  product->residual_ = reordered(residual, order_of_floats(order_));
  return product;
}

WaitingInt8* waiting_int8(const Variable& x) {
  return dynamic_cast<WaitingInt8*>(x.deferred_value().get());
}

Int8ValuesPtr waiting_bytes(const Variable& x, const std::optional<Int8Grid>& grid,
                            Int8Order order) {
  WaitingInt8* before = waiting_int8(x);
  return before != nullptr && grid && before->order() == order ? before->bytes(*grid) : nullptr;
}

std::optional<Variable> int8_activation(const Variable& x, Int8Activation activation) {
  const WaitingInt8* product = waiting_int8(x);
  if (product == nullptr || !product->takes_activation(activation)) return std::nullopt;
  return Variable::deferred(x.shape(), product->with(activation));
}

std::optional<Variable> int8_sum(const Variable& a, const Variable& b) {
  for (const auto& [product_of, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const WaitingInt8* product = waiting_int8(*product_of);
    if (product == nullptr || !product->takes_sum()) continue;
    if (other->shape() != product_of->shape()) continue;
    const Tensor residual = other->value();
    product = waiting_int8(*product_of);  // gone where both are one variable
    if (product == nullptr) return std::nullopt;
    return Variable::deferred(a.shape(), product->with(residual));
  }
  return std::nullopt;
}

}  // namespace lacuna
