// The dense opponents.
#include "conv/contender.h"

#if LACUNA_HAVE_DNNL

#include <dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lacuna::bench {
namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  static dnnl::stream only(engine());
  return only;
}

memory::desc describe(const Shape& shape, memory::format_tag tag) {
  return {{shape[0], shape[1], shape[2], shape[3]}, memory::data_type::f32, tag};
}

memory memory_of(const memory::desc& format, const Tensor& tensor) {
  return {format, engine(), const_cast<float*>(tensor.storage().data())};
}

Tensor empty(const memory::desc& format) {
  return Tensor::empty(Shape{static_cast<int64_t>(format.get_size() / sizeof(float))});
}

void reorder(memory from, memory into) {
  dnnl::reorder(from, into).execute(stream(), from, into);
  stream().wait();
}

// Row-major images or weights in a format of oneDNN's, and back.
Tensor in_format(const Tensor& row_major, const memory::desc& format) {
  Tensor result = empty(format);
  reorder(memory_of(describe(row_major.shape(), memory::format_tag::abcd), row_major),
          memory_of(format, result));
  return result;
}
Tensor row_major(const Tensor& result, const memory::desc& format, const Shape& shape) {
  Tensor rows = Tensor::empty(shape);
  reorder(memory_of(format, result), memory_of(describe(shape, memory::format_tag::abcd), rows));
  return rows;
}

// The workload's images in the formats that primitives want, shared with lacuna's contenders where
// those want the same.
class Operands {
 public:
  explicit Operands(const Images& images) : images_(images) {}

  memory in(const memory::desc& format) {
    const Shape& shape = images_.in(Order::RowMajor).shape();
    if (format == describe(shape, memory::format_tag::nchw)) {
      return memory_of(format, images_.in(Order::RowMajor));
    }
    if (format == describe(shape, memory::format_tag::nChw16c)) {
      return memory_of(format, images_.in(Order::ChannelBlocks));
    }
    for (const auto& [made, tensor] : own_) {
      if (made == format) return memory_of(format, tensor);
    }
    own_.emplace_back(format, in_format(images_.in(Order::RowMajor), format));
    return memory_of(format, own_.back().second);
  }

 private:
  const Images& images_;
  std::vector<std::pair<memory::desc, Tensor>> own_;
};

struct SharedOperands {
  Operands x, dy;
};

// A product's primitive, the formats it wants, and what it reads.
struct Primitive {
  dnnl::primitive run;
  memory::desc x, y, weight;
  std::string implementation;
  std::unordered_map<int, memory> arguments = {};
};

// All formats are oneDNN's choice.
std::array<Primitive, 3> make_primitives(const ConvolutionShape& s, dnnl::algorithm algorithm) {
  const auto any = memory::format_tag::any;
  const memory::desc x = describe(s.input_shape(), any), y = describe(s.output_shape(), any);
  const memory::desc weight = describe(s.weight_shape(), any);
  const memory::dims stride{s.window.stride.height, s.window.stride.width};
  const memory::dims padding{s.window.padding.height, s.window.padding.width};
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, x, weight, y, stride, padding, padding},
      engine());
  const dnnl::convolution_backward_data::primitive_desc input(
      {algorithm, x, weight, y, stride, padding, padding}, engine(), forward);
  const dnnl::convolution_backward_weights::primitive_desc weights(
      {algorithm, x, weight, y, stride, padding, padding}, engine(), forward);
  return {{{dnnl::convolution_forward(forward), forward.src_desc(), forward.dst_desc(),
            forward.weights_desc(), forward.impl_info_str()},
           {dnnl::convolution_backward_data(input), input.diff_src_desc(), input.diff_dst_desc(),
            input.weights_desc(), input.impl_info_str()},
           {dnnl::convolution_backward_weights(weights), weights.src_desc(),
            weights.diff_dst_desc(), weights.diff_weights_desc(), weights.impl_info_str()}}};
}

class Onednn final : public ConvolutionContender {
 public:
  Onednn(const ConvolutionWorkload& w, dnnl::algorithm algorithm,
         std::shared_ptr<SharedOperands> operands)
      : w_(w),
        operands_(std::move(operands)),
        primitives_(make_primitives(w.shape, algorithm)),
        weights_{in_format(w.weight, of(Product::Forward).weight),
                 in_format(w.weight, of(Product::InputGradient).weight)} {
    Primitive &forward = primitives_[0], &input = primitives_[1], &weight = primitives_[2];
    forward.arguments = {{DNNL_ARG_SRC, operands_->x.in(forward.x)},
                         {DNNL_ARG_WEIGHTS, memory_of(forward.weight, weights_[0])}};
    input.arguments = {{DNNL_ARG_DIFF_DST, operands_->dy.in(input.y)},
                       {DNNL_ARG_WEIGHTS, memory_of(input.weight, weights_[1])}};
    weight.arguments = {{DNNL_ARG_DIFF_DST, operands_->dy.in(weight.y)},
                        {DNNL_ARG_SRC, operands_->x.in(weight.x)}};
  }

  void release_results() override { y_ = dx_ = dw_ = Tensor(); }

  void run(Product product) override {
    Primitive& p = primitives_[static_cast<size_t>(product)];
    switch (product) {
      case Product::Forward:
        return execute(p, DNNL_ARG_DST, p.y, y_);
      case Product::InputGradient:
        return execute(p, DNNL_ARG_DIFF_SRC, p.x, dx_);
      case Product::WeightGradient:
        return execute(p, DNNL_ARG_DIFF_WEIGHTS, p.weight, dw_);
    }
  }

  void convert(Product product) override {
    if (product == Product::WeightGradient) return;
    const Primitive& p = of(product);
    if (product == Product::Forward) {
      convert(w_.x, p.x, operands_->dy.in(p.y), w_.shape.output_shape());
    } else {
      convert(w_.dy, p.y, operands_->x.in(p.x), w_.shape.input_shape());
    }
  }

  std::string implementation() const override {
    return of(Product::Forward).implementation + ", " + of(Product::InputGradient).implementation +
           ", " + of(Product::WeightGradient).implementation;
  }

  Tensor y() const override {
    return row_major(y_, of(Product::Forward).y, w_.shape.output_shape());
  }
  Tensor dx() const override {
    return row_major(dx_, of(Product::InputGradient).x, w_.shape.input_shape());
  }
  Tensor dw() const override {
    return row_major(dw_, of(Product::WeightGradient).weight, w_.shape.weight_shape());
  }

 private:
  const Primitive& of(Product product) const { return primitives_[static_cast<size_t>(product)]; }

  static void execute(Primitive& p, int which, const memory::desc& format, Tensor& result) {
    result = empty(format);
    p.arguments[which] = memory_of(format, result);
    p.run.execute(stream(), p.arguments);
    stream().wait();
  }

  static void convert(const Images& from, const memory::desc& wanted, const memory& back,
                      const Shape& back_shape) {
    const Tensor& rows = from.in(Order::RowMajor);
    if (wanted != describe(rows.shape(), memory::format_tag::nchw)) in_format(rows, wanted);
    const memory::desc plain = describe(back_shape, memory::format_tag::nchw);
    if (back.get_desc() == plain) return;
    const Tensor result = Tensor::empty(back_shape);
    reorder(back, memory_of(plain, result));
  }

  const ConvolutionWorkload& w_;
  std::shared_ptr<SharedOperands> operands_;
  std::array<Primitive, 3> primitives_;
  std::array<Tensor, 2> weights_;  // of the forward product and of the input's gradient
  Tensor y_, dx_, dw_;
};

}  // namespace

Opponents make_convolution_opponents(const ConvolutionWorkload& w) {
  const auto operands =
      std::make_shared<SharedOperands>(SharedOperands{Operands(w.x), Operands(w.dy)});
  return {.direct = std::make_unique<Onednn>(w, dnnl::algorithm::convolution_direct, operands),
          .automatic = std::make_unique<Onednn>(w, dnnl::algorithm::convolution_auto, operands)};
}

}  // namespace lacuna::bench

#else

namespace lacuna::bench {

Opponents make_convolution_opponents(const ConvolutionWorkload& w) {
  const PatternPtr dense = Pattern::dense(w.weight.shape());
  return {.direct = make_convolution_layout(w, dense),
          .automatic = make_convolution_layout(w, dense)};
}

}  // namespace lacuna::bench

#endif  // LACUNA_HAVE_DNNL
