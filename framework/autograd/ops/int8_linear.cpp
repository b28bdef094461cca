#include "lacuna/framework/autograd/ops/int8_linear.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// Activations as bytes.
struct Int8Values {
  Array<uint8_t> bytes;
  Int8Grid grid = {};           // of all examples, where these have none of their own
  Array<float> example_scales;  // by example, padded to slabs; or empty
  Array<int32_t> example_zeros;
};
using Int8ValuesPtr = std::shared_ptr<const Int8Values>;

Int8ValuesPtr quantized(const Tensor& x, const std::optional<Int8Grid>& grid) {
  const Tensor slabs = reordered(x, Order::BatchSlabs);
  const int64_t batch = x.shape().batch(), features = x.shape().features();
  auto values = std::make_shared<Int8Values>();
  values->bytes.resize(static_cast<size_t>(int8_slab_bytes(batch, features)));
  const float* from = slabs.data(Order::BatchSlabs);
  if (grid) {
    values->grid = *grid;
    int8_quantize(from, batch, features, *grid, values->bytes.data());
    return values;
  }
  const auto padded = static_cast<size_t>((batch + kSlabWidth - 1) / kSlabWidth * kSlabWidth);
  values->example_scales.resize(padded);
  values->example_zeros.resize(padded);
  int8_quantize_examples(from, batch, features, values->example_scales.data(),
                         values->example_zeros.data(), values->bytes.data());
  return values;
}

class Int8Product final : public DeferredValue {
 public:
  Int8Product(std::shared_ptr<const Int8Linear> layer, Int8ValuesPtr input, Shape shape)
      : layer_(std::move(layer)), input_(std::move(input)), shape_(std::move(shape)) {}

  Variable compute() override {
    Tensor y = Tensor::empty(shape_, Order::BatchSlabs);
    Int8Epilogue epilogue = this->epilogue();
    epilogue.floats = y.mutable_data(Order::BatchSlabs);
    run(epilogue);
    y.clear_padding();
    return y;
  }

  // The value in bytes of this grid; kept for others that want the same.
  Int8ValuesPtr bytes(const Int8Grid& grid) {
    if (bytes_ != nullptr && bytes_->grid == grid) return bytes_;
    auto values = std::make_shared<Int8Values>();
    values->grid = grid;
    values->bytes.resize(static_cast<size_t>(int8_slab_bytes(shape_.batch(), shape_.features())));
    Int8Epilogue epilogue = this->epilogue();
    epilogue.bytes = values->bytes.data();
    epilogue.grid = grid;
    run(epilogue);
    bytes_ = values;
    return values;
  }

  // Whether an activation may still come: it applies to the product, and a sum follows it.
  bool takes_activation() const {
    return activation_ == Int8Activation::None && !residual_.defined();
  }
  bool takes_sum() const { return !residual_.defined(); }
  std::shared_ptr<Int8Product> with(Int8Activation activation) const {
    auto product = std::make_shared<Int8Product>(layer_, input_, shape_);
    product->activation_ = activation;
    return product;
  }
  std::shared_ptr<Int8Product> with(const Tensor& residual) const {
    auto product = with(activation_);
    product->residual_ = reordered(residual, Order::BatchSlabs);
    return product;
  }

 private:
  Int8Epilogue epilogue() {
    const bool is_dynamic = !input_->example_scales.empty();
    scales_ = layer_->weight_scales;
    if (!is_dynamic) {
      for (float& scale : scales_) scale *= input_->grid.scale;
    }
    return {.scales = scales_.data(),
            .bias = layer_->bias.empty() ? nullptr : layer_->bias.data(),
            .zero = input_->grid.zero,
            .example_scales = is_dynamic ? input_->example_scales.data() : nullptr,
            .example_zeros = is_dynamic ? input_->example_zeros.data() : nullptr,
            .activation = activation_,
            .residual = residual_.defined() ? residual_.data(Order::BatchSlabs) : nullptr};
  }
  void run(const Int8Epilogue& epilogue) const {
    int8_product(layer_->weight, input_->bytes.data(), shape_.batch(), epilogue);
  }

  std::shared_ptr<const Int8Linear> layer_;
  Int8ValuesPtr input_;
  Shape shape_;
  Int8Activation activation_ = Int8Activation::None;
  Tensor residual_;  // slabs
  std::vector<float> scales_;
  Int8ValuesPtr bytes_;
};

Int8Product* waiting_product(const Variable& x) {
  return dynamic_cast<Int8Product*>(x.deferred_value().get());
}

}  // namespace

Variable int8_linear(const Variable& x, std::shared_ptr<const Int8Linear> layer) {
  const Int8Matrix& weight = layer->weight;
  if (x.shape().rank() < 1 || x.shape().features() != weight.columns) {
    throw ShapeError(fmt::format(
        "linear '{}': an int8 weight of shape [{}, {}] needs inputs "
        "[..., {}], found {}",
        layer->name, weight.rows, weight.columns, weight.columns, x.shape().to_string()));
  }
  if (grad_enabled()) {
    throw StateError(fmt::format(
        "linear '{}' is quantized to int8, and has no gradient: train the model that it was "
        "quantized from",
        layer->name));
  }
  Int8Product* before = waiting_product(x);
  const Int8ValuesPtr input = before != nullptr && layer->input
                                  ? before->bytes(*layer->input)
                                  : quantized(x.value(), layer->input);
  const Shape shape = x.shape().with_features(weight.rows);
  return Variable::deferred(shape, std::make_shared<Int8Product>(std::move(layer), input, shape));
}

std::optional<Variable> int8_activation(const Variable& x, Int8Activation activation) {
  const Int8Product* product = waiting_product(x);
  if (product == nullptr || !product->takes_activation()) return std::nullopt;
  return Variable::deferred(x.shape(), product->with(activation));
}

std::optional<Variable> int8_sum(const Variable& a, const Variable& b) {
  for (const auto& [product_of, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Int8Product* product = waiting_product(*product_of);
    if (product == nullptr || !product->takes_sum()) continue;
    if (other->shape() != product_of->shape()) continue;
    const Tensor residual = other->value();
    product = waiting_product(*product_of);  // gone where both are one variable
    if (product == nullptr) return std::nullopt;
    return Variable::deferred(a.shape(), product->with(residual));
  }
  return std::nullopt;
}

}  // namespace lacuna
