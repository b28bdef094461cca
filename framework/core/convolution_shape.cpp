#include "lacuna/framework/core/convolution_shape.h"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

int64_t places(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace

std::string Extent::to_string() const { return fmt::format("{}x{}", height, width); }

Extent Window::output(const Extent& image, const std::string& what) const {
  if (kernel.height < 1 || kernel.width < 1 || stride.height < 1 || stride.width < 1 ||
      padding.height < 0 || padding.width < 0 || dilation.height < 1 || dilation.width < 1) {
    throw ShapeError(fmt::format(
        "{}: kernel, stride and dilation must be at least 1 and padding at least 0, found kernel "
        "{}, stride {}, padding {}, dilation {}",
        what, kernel.to_string(), stride.to_string(), padding.to_string(), dilation.to_string()));
  }
  const Extent output{
      places(image.height, kernel.height, stride.height, padding.height, dilation.height),
      places(image.width, kernel.width, stride.width, padding.width, dilation.width)};
  if (output.height < 1 || output.width < 1) {
    throw ShapeError(fmt::format(
        "{}: a kernel of {}{} does not fit an image of {} with padding {}", what,
        kernel.to_string(),
        dilation == Extent{1, 1} ? "" : fmt::format(" with dilation {}", dilation.to_string()),
        image.to_string(), padding.to_string()));
  }
  return output;
}

Window LengthWindow::on_images() const {
  return {.kernel = {1, kernel},
          .stride = {1, stride},
          .padding = {0, padding},
          .dilation = {1, dilation}};
}

int64_t LengthWindow::output(int64_t length, const std::string& what) const {
  if (kernel < 1 || stride < 1 || padding < 0 || dilation < 1) {
    throw ShapeError(fmt::format(
        "{}: kernel, stride and dilation must be at least 1 and padding at least 0, found kernel "
        "{}, stride {}, padding {}, dilation {}",
        what, kernel, stride, padding, dilation));
  }
  const int64_t output = places(length, kernel, stride, padding, dilation);
  if (output < 1) {
    throw ShapeError(fmt::format(
        "{}: a kernel of {}{} does not fit a length of {} with padding {}", what, kernel,
        dilation == 1 ? "" : fmt::format(" with dilation {}", dilation), length, padding));
  }
  return output;
}

Extent ConvolutionShape::output() const { return window.output(image, "convolution"); }

Shape ConvolutionShape::weight_shape() const {
  return {out_channels, in_channels / groups, window.kernel.height, window.kernel.width};
}

Shape ConvolutionShape::output_shape() const {
  const Extent size = output();
  return {batch, out_channels, size.height, size.width};
}

double ConvolutionShape::operations(int64_t nonzeros) const {
  const Extent size = output();
  return 2.0 * static_cast<double>(nonzeros) *
         static_cast<double>(batch * size.height * size.width);
}

}  // namespace lacuna
