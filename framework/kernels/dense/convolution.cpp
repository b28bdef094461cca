// Work is cut into blocks of examples that depend only on the sizes and the machine. Each block is
// one single-threaded product, so results do not depend on the number of threads. Each block
// repeats the transformation of the weight, so blocks have enough tiles (of 4 × 4 outputs, for
// Winograd's) that this is the smaller part of the work.
#include "lacuna/framework/kernels/dense/convolution.hpp"

#include <algorithm>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/convolution_block.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

const ConvolutionProvider& provider(ConvolutionAlgorithm algorithm) {
  if (use_reference_kernels()) return reference_convolution();
#if LACUNA_HAVE_DNNL
  return onednn_convolution(algorithm);
#else
  (void)algorithm;
  return unfolded_convolution();
#endif
}

bool has_channel_blocks() {
#if LACUNA_HAVE_DNNL
  return !use_reference_kernels();
#else
  return false;
#endif
}

// Winograd's tiles of 4 × 4 outputs.
int64_t tiles_of_image(const ConvolutionShape& s) {
  const Extent out = s.output();
  return (out.height + 3) / 4 * ((out.width + 3) / 4);
}

// Examples per block. Direct convolutions have no more blocks than the machine can process at a
// time, because each converts the weight, and its gradient, again (1×1 1024→256 @14 on an Intel
// Xeon: 8 blocks run at 0.84 of oneDNN's speed on all examples, 2 at 0.94).
int64_t block_batch(const ConvolutionShape& s, ConvolutionAlgorithm algorithm) {
  constexpr int64_t kTiles = 64;
  const int64_t blocks =
      algorithm.is_winograd ? algorithm.blocks : std::min(algorithm.blocks, most_dense_blocks());
  const int64_t tiles = tiles_of_image(s), least = (kTiles + tiles - 1) / tiles;
  return std::max<int64_t>(
      {1, (s.batch + blocks - 1) / blocks, std::min(least, (s.batch + 1) / 2)});
}

int64_t floats_of_example(const Tensor& images) {
  return images.shape()[0] == 0 ? 0 : images.storage_size() / images.shape()[0];
}

// Returns the images in the order that dense products use.
Tensor in_dense_order(const Tensor& images) {
  return reordered(images, dense_image_order(images.shape()[1]));
}

// Calls `body(block's shape, its first example, block)` for each block.
template <class Body>
void for_each_block(const ConvolutionShape& shape, int64_t examples, const Body& body) {
  parallel_blocks((shape.batch + examples - 1) / examples, [&](int64_t block) {
    ConvolutionShape part = shape;
    part.batch = std::min(examples, shape.batch - block * examples);
    body(part, block * examples, block);
  });
}

}  // namespace

Order dense_image_order(int64_t channels) {
  // Few channels: a padded block takes as long as converting (ResNet-20 of width 9 to 12). Widths
  // of 20, 24 and 40 take 0.82 to 0.86 of the time with blocks (Intel Xeon, AVX-512).
  return channels >= kChannelBlock && has_channel_blocks() ? Order::ChannelBlocks : Order::RowMajor;
}

bool has_winograd(const ConvolutionShape& shape) {
#if LACUNA_HAVE_DNNL
  bool has_it = false;
  // Within a block, as for the products: in one thread.
  if (!use_reference_kernels())
    parallel_blocks(1, [&](int64_t) { has_it = onednn_has_winograd(shape); });
  return has_it;
#else
  (void)shape;
  return false;
#endif
}

ConvolutionAlgorithm winograd_for(const ConvolutionShape& shape) {
  constexpr int64_t kTilesOfTwo = 512;
  constexpr int64_t kMostBytes = int64_t{32} << 20;
  constexpr int64_t kTransformed = 36;  // floats per tile and channel
  const int64_t tiles = shape.batch * tiles_of_image(shape);
  const int64_t bytes = tiles * (shape.in_channels + shape.out_channels) * kTransformed *
                        static_cast<int64_t>(sizeof(float));
  const int64_t blocks =
      std::max<int64_t>(tiles < kTilesOfTwo ? 1 : 2, (bytes + kMostBytes - 1) / kMostBytes);
  return {.is_winograd = true,
          .blocks = std::clamp<int64_t>(blocks, 1, ConvolutionAlgorithm::kMostBlocks)};
}

Tensor dense_convolution(const ConvolutionShape& shape, ConvolutionAlgorithm algorithm,
                         const float* weight, const Tensor& x, const float* bias) {
  const Tensor from = in_dense_order(x);
  Tensor y = Tensor::empty(shape.output_shape(), dense_image_order(shape.out_channels));
  const float* source = from.data(from.order());
  float* into = y.mutable_data(y.order());
  const int64_t in = floats_of_example(from), out = floats_of_example(y);
  for_each_block(shape, block_batch(shape, algorithm),
                 [&](const ConvolutionShape& part, int64_t first, int64_t) {
                   provider(algorithm).forward(part, {source + first * in, from.order()}, weight,
                                               bias, {into + first * out, y.order()});
                 });
  return y;
}

Tensor dense_convolution_input_gradient(const ConvolutionShape& shape,
                                        ConvolutionAlgorithm algorithm, const float* weight,
                                        const Tensor& dy) {
  const Tensor from = in_dense_order(dy);
  Tensor dx = Tensor::empty(shape.input_shape(), dense_image_order(shape.in_channels));
  const float* source = from.data(from.order());
  float* into = dx.mutable_data(dx.order());
  const int64_t in = floats_of_example(dx), out = floats_of_example(from);
  for_each_block(shape, block_batch(shape, algorithm),
                 [&](const ConvolutionShape& part, int64_t first, int64_t) {
                   provider(algorithm).input_gradient(part, {source + first * out, from.order()},
                                                      weight, {into + first * in, dx.order()});
                 });
  return dx;
}

void dense_convolution_weight_gradient(const ConvolutionShape& shape,
                                       ConvolutionAlgorithm algorithm, const Tensor& dy,
                                       const Tensor& x, Accumulate accumulate,
                                       std::span<float> gradient) {
  const Tensor of = in_dense_order(dy), from = in_dense_order(x);
  const int64_t in = floats_of_example(from), out = floats_of_example(of);
  const int64_t examples = block_batch(shape, algorithm),
                blocks = (shape.batch + examples - 1) / examples;
  const size_t size = gradient.size();
  const float* dy_data = of.data(of.order());
  const float* x_data = from.data(from.order());
  Array<float> sums(size * static_cast<size_t>(blocks));
  for_each_block(shape, examples, [&](const ConvolutionShape& part, int64_t first, int64_t block) {
    provider(algorithm).weight_gradient(part, {dy_data + first * out, of.order()},
                                        {x_data + first * in, from.order()},
                                        sums.data() + static_cast<size_t>(block) * size);
  });
  constexpr int64_t kGrain = 1 << 14;
  parallel_for(static_cast<int64_t>(size), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float& into = gradient[static_cast<size_t>(i)];
      float sum = accumulate == Accumulate::Yes ? into : 0.0f;
      for (int64_t block = 0; block < blocks; ++block) {
        sum += sums[static_cast<size_t>(block) * size + static_cast<size_t>(i)];
      }
      into = sum;
    }
  });
}

}  // namespace lacuna
