// What the convolution benchmark measures: a convolution, a sparsity, and operands.
#pragma once

#include <cstdint>
#include <map>

#include "common/operands.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// The same images in every order that a contender wants them in, each made when first asked for.
class Images {
 public:
  Images() = default;
  explicit Images(const Tensor& row_major) : orders_{{Order::RowMajor, row_major}} {}
  const Tensor& in(Order order) const;

 private:
  mutable std::map<Order, Tensor> orders_;
};

/// Operands of a convolution's three products. Contenders that want them in the same order share
/// their memory, as a layer works on what the one before it has just written, not on a copy of its
/// own.
struct ConvolutionWorkload {
  ConvolutionShape shape;
  double sparsity = 0.0;
  int64_t nnz = 0;
  Images x = {}, dy = {};  ///< what goes in, and the gradient of what comes out
  Tensor weight = {};      ///< [out, in, kernel], zero outside the mask
  BitMask mask = {};       ///< of the weight's elements

  static ConvolutionWorkload random(const ConvolutionShape& shape, double sparsity);
};

/// A square kernel over square images, padded by half of it: "same" where the stride is 1.
ConvolutionShape square_convolution(int64_t batch, int64_t in, int64_t out, int64_t kernel,
                                    int64_t stride, int64_t size);

}  // namespace lacuna::bench
