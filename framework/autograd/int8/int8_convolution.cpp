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

// Few images lie as they come.
Int8ValuesPtr quantized_pixels(const Tensor& x, const std::optional<Int8Grid>& grid) {
  const Tensor images = reordered(x, Order::RowMajor);
  auto values = std::make_shared<Int8Values>();
  values->bytes.resize(static_cast<size_t>(int8_pixel_bytes(x.shape())));
  if (grid) {
    values->grid = *grid;
    int8_quantize_pixels(images.data(), x.shape(), *grid, values->bytes.data());
    return values;
  }
  values->example_scales.resize(static_cast<size_t>(x.shape()[0]));
  values->example_zeros.resize(static_cast<size_t>(x.shape()[0]));
  int8_quantize_pixel_examples(images.data(), x.shape(), values->example_scales.data(),
                               values->example_zeros.data(), values->bytes.data());
  return values;
}

Int8Order order_for_images(int64_t batch) {
  return batch <= int8_few_images() ? Int8Order::Pixels : Int8Order::Images;
}

class WaitingConvolution final : public WaitingInt8 {
 public:
  WaitingConvolution(std::shared_ptr<const Int8ConvolutionLayer> layer, Int8ValuesPtr input,
                     const ConvolutionShape& convolution)
      : WaitingInt8(std::move(input), convolution.output_shape(),
                    order_for_images(convolution.batch), layer->weight_scales, layer->bias),
        layer_(std::move(layer)),
        convolution_(convolution) {}

 private:
  std::shared_ptr<WaitingInt8> copy() const override {
    return std::make_shared<WaitingConvolution>(*this);
  }
  void run(const Int8Epilogue& epilogue) const override {
    const uint8_t* x = input()->bytes.data();
    const int64_t batch = convolution_.batch;
    if (order() == Int8Order::Pixels) {
      int8_convolve_pixels(layer_->weight, layer_->pixel_products(convolution_), x, batch,
                           epilogue);
    } else {
      int8_convolve(layer_->weight, layer_->products(convolution_), x, batch, epilogue);
    }
  }
  int64_t byte_count() const override {
    return order() == Int8Order::Pixels ? int8_pixel_bytes(shape()) : int8_image_bytes(shape());
  }

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

const Int8PixelConvolution& Int8ConvolutionLayer::pixel_products(
    const ConvolutionShape& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      made_of_pixels_, [&](const Int8PixelConvolution& c) { return c.shape.image == shape.image; });
  if (found != made_of_pixels_.end()) return *found;
  made_of_pixels_.push_back(int8_pixel_convolution(weight, shape));
  return made_of_pixels_.back();
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
    throw StateError(
        fmt::format("conv2d '{}' is quantized to int8, and has no gradient: compute without "
                    "recording (NoGrad, in Python lc.no_grad()), or train the model that it was "
                    "quantized from",
                    layer->name));
  }
  const ConvolutionShape shape{.batch = images[0],
                               .in_channels = images[1],
                               .out_channels = layer->weight.rows,
                               .image = {images[2], images[3]},
                               .window = layer->window};
  shape.window.output(shape.image, "conv2d '" + layer->name + "'");
  const Int8Order order = order_for_images(shape.batch);
  Int8ValuesPtr input = waiting_bytes(x, layer->input, order);
  if (input == nullptr) {
    input = order == Int8Order::Pixels ? quantized_pixels(x.value(), layer->input)
                                       : quantized_images(x.value(), layer->input);
  }
  return Variable::deferred(shape.output_shape(), std::make_shared<WaitingConvolution>(
                                                      std::move(layer), std::move(input), shape));
}

}  // namespace lacuna
