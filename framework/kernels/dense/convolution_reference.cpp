#include <vector>

#include "lacuna/framework/kernels/dense/convolution_block.hpp"

namespace lacuna {
namespace {

// Calls `visit(flat index in x, in the weight, in y)` for each product.
template <class Visit>
void for_each_product(const ConvolutionShape& s, const Visit& visit) {
  const Extent out = s.output();
  const Window& w = s.window;
  const int64_t in = s.in_channels / s.groups, outs = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t c = 0; c < in; ++c) {
        const int64_t plane = n * s.in_channels + o / outs * in + c;
        for (int64_t tap = 0; tap < s.taps(); ++tap) {
          const int64_t ky = tap / w.kernel.width, kx = tap % w.kernel.width;
          for (int64_t h = 0; h < out.height; ++h) {
            const int64_t y = h * w.stride.height + ky * w.dilation.height - w.padding.height;
            if (y < 0 || y >= s.image.height) continue;
            for (int64_t v = 0; v < out.width; ++v) {
              const int64_t x = v * w.stride.width + kx * w.dilation.width - w.padding.width;
              if (x < 0 || x >= s.image.width) continue;
              visit((plane * s.image.height + y) * s.image.width + x, (o * in + c) * s.taps() + tap,
                    ((n * s.out_channels + o) * out.height + h) * out.width + v);
            }
          }
        }
      }
    }
  }
}

void round_into(const std::vector<double>& sums, float* into) {
  for (size_t i = 0; i < sums.size(); ++i) into[i] = static_cast<float>(sums[i]);
}

class ReferenceConvolution final : public ConvolutionProvider {
 public:
  void forward(const ConvolutionShape& s, ConstImages x, const float* weight, const float* bias,
               Images y) const override {
    std::vector<double> sums(static_cast<size_t>(s.output_shape().numel()));
    const Extent out = s.output();
    for (size_t i = 0; bias != nullptr && i < sums.size(); ++i) {
      sums[i] = bias[static_cast<int64_t>(i) / (out.height * out.width) % s.out_channels];
    }
    for_each_product(s, [&](int64_t in, int64_t at, int64_t to) {
      sums[static_cast<size_t>(to)] += static_cast<double>(weight[at]) * x.data[in];
    });
    round_into(sums, y.data);
  }

  void input_gradient(const ConvolutionShape& s, ConstImages dy, const float* weight,
                      Images dx) const override {
    std::vector<double> sums(static_cast<size_t>(s.input_shape().numel()));
    for_each_product(s, [&](int64_t in, int64_t at, int64_t to) {
      sums[static_cast<size_t>(in)] += static_cast<double>(weight[at]) * dy.data[to];
    });
    round_into(sums, dx.data);
  }

  void weight_gradient(const ConvolutionShape& s, ConstImages dy, ConstImages x,
                       float* gradient) const override {
    std::vector<double> sums(static_cast<size_t>(s.weight_shape().numel()));
    for_each_product(s, [&](int64_t in, int64_t at, int64_t to) {
      sums[static_cast<size_t>(at)] += static_cast<double>(dy.data[to]) * x.data[in];
    });
    round_into(sums, gradient);
  }
};

}  // namespace

const ConvolutionProvider& reference_convolution() {
  static const ReferenceConvolution provider;
  return provider;
}

}  // namespace lacuna
