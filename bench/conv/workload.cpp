#include "conv/workload.h"

#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna::bench {

const Tensor& Images::in(Order order) const {
  Tensor& images = orders_[order];
  if (!images.defined()) images = reordered(orders_.at(Order::RowMajor), order);
  return images;
}

ConvolutionWorkload ConvolutionWorkload::random(const ConvolutionShape& shape, double sparsity) {
  ConvolutionWorkload w{.shape = shape, .sparsity = sparsity};
  w.x = Images(random_tensor(shape.input_shape(), "x"));
  w.dy = Images(random_tensor(shape.output_shape(), "dy"));
  const Shape weight = shape.weight_shape();
  w.mask = random_mask(matrix_rows(weight), matrix_columns(weight), sparsity, Degrees::Uniform);
  w.nnz = w.mask.count();
  const Tensor values = random_tensor(weight, "weight");
  w.weight = Tensor::zeros(weight);
  w.mask.for_each([&](int64_t i) { w.weight.mutable_data()[i] = values.data()[i]; });
  return w;
}

ConvolutionShape square_convolution(int64_t batch, int64_t in, int64_t out, int64_t kernel,
                                    int64_t stride, int64_t size) {
  return {.batch = batch,
          .in_channels = in,
          .out_channels = out,
          .image = {size, size},
          .window = {.kernel = {kernel, kernel},
                     .stride = {stride, stride},
                     .padding = {kernel / 2, kernel / 2}},
          .algorithms = {}};
}

}  // namespace lacuna::bench
