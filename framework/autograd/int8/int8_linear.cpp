#include "lacuna/framework/autograd/int8/int8_linear.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/autograd/ops/int8_waiting.hpp"
#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

Int8ValuesPtr quantized_slabs(const Tensor& x, const std::optional<Int8Grid>& grid) {
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

// Few examples are rows, of floats and of bytes.
Int8ValuesPtr quantized_rows(const Tensor& x, const std::optional<Int8Grid>& grid) {
  const Tensor rows = reordered(x, Order::RowMajor);
  const int64_t batch = x.shape().batch(), features = x.shape().features();
  auto values = std::make_shared<Int8Values>();
  values->bytes.resize(static_cast<size_t>(batch * int8_row_bytes(features)));
  if (grid) {
    values->grid = *grid;
    int8_quantize_rows(rows.data(), batch, features, *grid, values->bytes.data());
    return values;
  }
  values->example_scales.resize(static_cast<size_t>(batch));
  values->example_zeros.resize(static_cast<size_t>(batch));
  int8_quantize_row_examples(rows.data(), batch, features, values->example_scales.data(),
                             values->example_zeros.data(), values->bytes.data());
  return values;
}

Int8Order order_for(const Shape& x) {
  return x.batch() <= int8_few_examples() ? Int8Order::Rows : Int8Order::Slabs;
}

class WaitingLinear final : public WaitingInt8 {
 public:
  WaitingLinear(std::shared_ptr<const Int8Linear> layer, Int8ValuesPtr input, const Shape& shape)
      : WaitingInt8(std::move(input), shape, order_for(shape), layer->weight_scales, layer->bias),
        layer_(std::move(layer)) {}

 private:
  std::shared_ptr<WaitingInt8> copy() const override {
    return std::make_shared<WaitingLinear>(*this);
  }
  void run(const Int8Epilogue& epilogue) const override {
    const int64_t batch = shape().batch();
    if (order() == Int8Order::Rows) {
      int8_few_product(layer_->weight, layer_->sliced(), input()->bytes.data(), batch, epilogue);
    } else {
      int8_product(layer_->weight, input()->bytes.data(), batch, epilogue);
    }
  }
  int64_t byte_count() const override {
    const int64_t batch = shape().batch(), features = shape().features();
    return order() == Int8Order::Rows ? batch * int8_row_bytes(features)
                                      : int8_slab_bytes(batch, features);
  }

  std::shared_ptr<const Int8Linear> layer_;
};

}  // namespace

const Int8Sliced& Int8Linear::sliced() const {
  std::call_once(once_, [&] { sliced_ = int8_sliced(weight); });
  return sliced_;
}

Variable int8_linear(const Variable& x, std::shared_ptr<const Int8Linear> layer) {
  const Int8Matrix& weight = layer->weight;
  if (x.shape().rank() < 1 || x.shape().features() != weight.columns) {
    throw ShapeError(fmt::format(
        "linear '{}': an int8 weight of shape [{}, {}] needs inputs "
        "[..., {}], found {}",
        layer->name, weight.rows, weight.columns, weight.columns, x.shape().to_string()));
  }
  if (grad_enabled()) {
    throw StateError(
        fmt::format("linear '{}' is quantized to int8, and has no gradient: compute without "
                    "recording (NoGrad, in Python lc.no_grad()), or train the model that it was "
                    "quantized from",
                    layer->name));
  }
  const Int8Order order = order_for(x.shape());
  Int8ValuesPtr input = waiting_bytes(x, layer->input, order);
  if (input == nullptr) {
    input = order == Int8Order::Rows ? quantized_rows(x.value(), layer->input)
                                     : quantized_slabs(x.value(), layer->input);
  }
  const Shape shape = x.shape().with_features(weight.rows);
  return Variable::deferred(shape, std::make_shared<WaitingLinear>(std::move(layer), input, shape));
}

}  // namespace lacuna
