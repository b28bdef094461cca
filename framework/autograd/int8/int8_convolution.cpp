#include "lacuna/framework/autograd/int8/int8_convolution.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/autograd/ops/int8_waiting.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

Int8ValuesPtr quantized_images(const Tensor& x, const std::optional<Int8Grid>& grid) {
  const Tensor images = reordered(x, Order::ImageSlabs);
  auto values = std::make_shared<Int8Values>();
  values->bytes.resize(static_cast<size_t>(int8_image_bytes(x.shape())));
  if (grid) {
    values->grid = *grid;
    int8_quantize_images(images, *grid, values->bytes.data());
    return values;
  }
  const auto padded = static_cast<size_t>(ImageSlabs(x.shape()).slabs() * kImageSlabWidth);
  values->example_scales.resize(padded);
  values->example_zeros.resize(padded);
  int8_quantize_image_examples(images, values->example_scales.data(), values->example_zeros.data(),
                               values->bytes.data());
  return values;
}

class WaitingConvolution final : public WaitingInt8 {
 public:
  WaitingConvolution(std::shared_ptr<const Int8ConvolutionLayer> layer, Int8ValuesPtr input,
                     const ConvolutionShape& convolution)
      : WaitingInt8(std::move(input), convolution.output_shape(), Order::ImageSlabs,
                    layer->weight_scales, layer->bias),
        layer_(std::move(layer)),
        convolution_(convolution) {}

 private:
  std::shared_ptr<WaitingInt8> copy() const override {
    return std::make_shared<WaitingConvolution>(*this);
  }
  void run(const Int8Epilogue& epilogue) const override {
    int8_convolve(layer_->weight, layer_->products(convolution_), input()->bytes.data(),
                  convolution_.batch, epilogue);
  }
  int64_t byte_count() const override { return int8_image_bytes(shape()); }

  std::shared_ptr<const Int8ConvolutionLayer> layer_;
  ConvolutionShape convolution_;
};

}  // namespace

const Int8Convolution& Int8ConvolutionLayer::products(const ConvolutionShape& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      made_, [&](const Int8Convolution& c) { return c.plan.shape.image == shape.image; });
  if (found != made_.end()) return *found;
  ConvolutionShape sizes = shape;
  sizes.batch = 0;
  made_.push_back(make_int8_convolution(weight, sizes));
  return made_.back();
}

Variable int8_conv2d(const Variable& x, std::shared_ptr<const Int8ConvolutionLayer> layer) {
  const Shape& images = x.shape();
  if (images.rank() != 4 || images[1] != layer->weight.channels) {
    throw ShapeError(fmt::format(
        "conv2d '{}': an int8 weight of {} input channels needs images [batch, {}, height, width], "
        "found {}",
        layer->name, layer->weight.channels, layer->weight.channels, images.to_string()));
  }
  if (grad_enabled()) {
    throw StateError(fmt::format(
        "conv2d '{}' is quantized to int8, and has no gradient: train the model that it was "
        "quantized from",
        layer->name));
  }
  const ConvolutionShape shape{.batch = images[0],
                               .in_channels = images[1],
                               .out_channels = layer->weight.rows,
                               .image = {images[2], images[3]},
                               .window = layer->window};
  shape.window.output(shape.image, "conv2d '" + layer->name + "'");
  Int8ValuesPtr input = waiting_bytes(x, layer->input, Order::ImageSlabs);
  if (input == nullptr) input = quantized_images(x.value(), layer->input);
  return Variable::deferred(shape.output_shape(), std::make_shared<WaitingConvolution>(
                                                      std::move(layer), std::move(input), shape));
}

}  // namespace lacuna
