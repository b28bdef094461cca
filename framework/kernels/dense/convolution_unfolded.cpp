// Convolution as a matrix product: the pixels under the kernel at each place become a column.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <vector>

#include "lacuna/framework/kernels/dense/convolution_block.hpp"

namespace lacuna {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Matrix>;
using ConstMap = Eigen::Map<const Matrix>;

// One example's group of channels.
struct Part {
  const ConvolutionShape& shape;
  int64_t in = 0, out = 0;  // channels
  Extent output;

  explicit Part(const ConvolutionShape& s)
      : shape(s),
        in(s.in_channels / s.groups),
        out(s.out_channels / s.groups),
        output(s.output()) {}
  int64_t rows() const { return in * shape.taps(); }
  int64_t places() const { return output.height * output.width; }

  // Calls `visit(row, place, pixel of the part)` for the pixels within the image.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const Window& w = shape.window;
    for (int64_t row = 0; row < rows(); ++row) {
      const int64_t channel = row / shape.taps(), tap = row % shape.taps();
      const int64_t dy = tap / w.kernel.width * w.dilation.height - w.padding.height;
      const int64_t dx = tap % w.kernel.width * w.dilation.width - w.padding.width;
      for (int64_t h = 0; h < output.height; ++h) {
        const int64_t y = h * w.stride.height + dy;
        if (y < 0 || y >= shape.image.height) continue;
        for (int64_t v = 0; v < output.width; ++v) {
          const int64_t x = v * w.stride.width + dx;
          if (x < 0 || x >= shape.image.width) continue;
          visit(row, h * output.width + v,
                (channel * shape.image.height + y) * shape.image.width + x);
        }
      }
    }
  }

  Matrix unfold(const float* pixels) const {
    Matrix columns = Matrix::Zero(rows(), places());
    for_each(
        [&](int64_t row, int64_t place, int64_t pixel) { columns(row, place) = pixels[pixel]; });
    return columns;
  }
};

// Calls `body(part, example · groups + group, group)`.
template <class Body>
void for_each_part(const ConvolutionShape& s, const Body& body) {
  const Part part(s);
  for (int64_t i = 0; i < s.batch * s.groups; ++i) body(part, i, i % s.groups);
}

class UnfoldedConvolution final : public ConvolutionProvider {
 public:
  void forward(const ConvolutionShape& s, ConstImages x, const float* weight, const float* bias,
               Images y) const override {
    const int64_t image = s.image.height * s.image.width;
    for_each_part(s, [&](const Part& p, int64_t i, int64_t group) {
      Map into(y.data + i * p.out * p.places(), p.out, p.places());
      into.noalias() = ConstMap(weight + group * p.out * p.rows(), p.out, p.rows()) *
                       p.unfold(x.data + i * p.in * image);
      for (int64_t o = 0; bias != nullptr && o < p.out; ++o) {
        into.row(o).array() += bias[group * p.out + o];
      }
    });
  }

  void input_gradient(const ConvolutionShape& s, ConstImages dy, const float* weight,
                      Images dx) const override {
    const int64_t image = s.image.height * s.image.width;
    std::fill_n(dx.data, s.input_shape().numel(), 0.0f);
    for_each_part(s, [&](const Part& p, int64_t i, int64_t group) {
      const Matrix columns =
          ConstMap(weight + group * p.out * p.rows(), p.out, p.rows()).transpose() *
          ConstMap(dy.data + i * p.out * p.places(), p.out, p.places());
      float* into = dx.data + i * p.in * image;
      p.for_each(
          [&](int64_t row, int64_t place, int64_t pixel) { into[pixel] += columns(row, place); });
    });
  }

  void weight_gradient(const ConvolutionShape& s, ConstImages dy, ConstImages x,
                       float* gradient) const override {
    const int64_t image = s.image.height * s.image.width;
    std::fill_n(gradient, s.weight_shape().numel(), 0.0f);
    for_each_part(s, [&](const Part& p, int64_t i, int64_t group) {
      Map(gradient + group * p.out * p.rows(), p.out, p.rows()).noalias() +=
          ConstMap(dy.data + i * p.out * p.places(), p.out, p.places()) *
          p.unfold(x.data + i * p.in * image).transpose();
    });
  }
};

}  // namespace

const ConvolutionProvider& unfolded_convolution() {
  static const UnfoldedConvolution provider;
  return provider;
}

}  // namespace lacuna
