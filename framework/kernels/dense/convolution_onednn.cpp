// oneDNN's convolution primitives, created once for each size and kept. They are created for one
// thread, and each thread has its own scratchpad, so several threads may run the same primitive.
#include "lacuna/framework/kernels/dense/convolution_block.hpp"
#include "lacuna/framework/kernels/dense/kernel_memory.hpp"

#if LACUNA_HAVE_DNNL

#include <fmt/core.h>

#include <dnnl.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::dims pair(Extent extent) { return {extent.height, extent.width}; }

// oneDNN counts the pixels between taps instead of their distance.
memory::dims between(Extent dilation) { return {dilation.height - 1, dilation.width - 1}; }

memory::desc images(const ConvolutionShape& s, bool is_output, memory::format_tag tag) {
  const Extent size = is_output ? s.output() : s.image;
  const int64_t channels = is_output ? s.out_channels : s.in_channels;
  return {{s.batch, channels, size.height, size.width}, memory::data_type::f32, tag};
}

memory::format_tag tag_of(Order order) {
  return order == Order::ChannelBlocks ? memory::format_tag::nChw16c : memory::format_tag::nchw;
}

memory::desc weight_of(const ConvolutionShape& s, bool is_any) {
  const Extent k = s.window.kernel;
  const int64_t out = s.out_channels / s.groups, in = s.in_channels / s.groups;
  using tag = memory::format_tag;
  if (s.groups == 1) {
    return {{out, in, k.height, k.width}, memory::data_type::f32, is_any ? tag::any : tag::oihw};
  }
  return {{s.groups, out, in, k.height, k.width},
          memory::data_type::f32,
          is_any ? tag::any : tag::goihw};
}

enum class Kind { Forward, InputGradient, WeightGradient };

struct Primitive {
  dnnl::primitive run;
  memory::desc x, y, weight, scratchpad;
};

template <class Description>
Primitive finish(const Description& d, const dnnl::primitive& run, memory::desc x, memory::desc y,
                 memory::desc weight) {
  return {run, std::move(x), std::move(y), std::move(weight), d.scratchpad_desc()};
}

Primitive make(Kind kind, const ConvolutionShape& s, dnnl::algorithm algorithm, bool has_bias) {
  require_memory_for_kernels();
  const memory::desc x = images(s, false, memory::format_tag::any);
  const memory::desc y = images(s, true, memory::format_tag::any);
  const memory::desc weight = weight_of(s, true);
  const memory::desc bias =
      has_bias ? memory::desc({s.out_channels}, memory::data_type::f32, memory::format_tag::a)
               : memory::desc();
  const memory::dims stride = pair(s.window.stride), padding = pair(s.window.padding),
                     dilation = between(s.window.dilation);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, x, weight, bias, y, stride, dilation, padding,
       padding},
      attributes, engine());
  if (kind == Kind::Forward) {
    return finish(forward, dnnl::convolution_forward(forward), forward.src_desc(),
                  forward.dst_desc(), forward.weights_desc());
  }
  if (kind == Kind::InputGradient) {
    const dnnl::convolution_backward_data::primitive_desc d(
        {algorithm, x, weight, y, stride, dilation, padding, padding}, attributes, engine(),
        forward);
    return finish(d, dnnl::convolution_backward_data(d), d.diff_src_desc(), d.diff_dst_desc(),
                  d.weights_desc());
  }
  const dnnl::convolution_backward_weights::primitive_desc d(
      {algorithm, x, weight, y, stride, dilation, padding, padding}, attributes, engine(), forward);
  return finish(d, dnnl::convolution_backward_weights(d), d.src_desc(), d.diff_dst_desc(),
                d.diff_weights_desc());
}

std::string key_of(Kind kind, const ConvolutionShape& s, ConvolutionAlgorithm algorithm,
                   bool has_bias) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(kind), s.batch,
                     s.in_channels, s.out_channels, s.groups, s.image.to_string(),
                     s.window.kernel.to_string(), s.window.stride.to_string(),
                     s.window.padding.to_string(), s.window.dilation.to_string(),
                     algorithm.is_winograd, has_bias, s.output().to_string());
}

// Winograd's primitive, or null if there is none.
std::shared_ptr<const Primitive> make_winograd(Kind kind, const ConvolutionShape& s,
                                               bool has_bias) {
  try {
    return std::make_shared<const Primitive>(
        make(kind, s, dnnl::algorithm::convolution_winograd, has_bias));
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return nullptr;
  }
}

// If there is no Winograd primitive for a product, it is direct.
std::shared_ptr<const Primitive> primitive(Kind kind, const ConvolutionShape& s,
                                           ConvolutionAlgorithm algorithm, bool has_bias) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Primitive>> made;
  const std::string key = key_of(kind, s, algorithm, has_bias);
  const std::lock_guard lock(mutex);
  auto& entry = made[key];
  if (entry != nullptr) return entry;
  if (algorithm.is_winograd) entry = make_winograd(kind, s, has_bias);
  if (entry == nullptr) {
    entry = std::make_shared<const Primitive>(
        make(kind, s, dnnl::algorithm::convolution_direct, has_bias));
  }
  return entry;
}

// Memory of a product in addition to its operands.
class Scratch {
 public:
  void* take(size_t bytes) { return blocks_.emplace_back(bytes).data(); }

 private:
  std::vector<Array<char>> blocks_;
};

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

// An input of a product, in the form that its primitive requires.
memory wanted(const memory::desc& have, const float* data, const memory::desc& want,
              Scratch& scratch) {
  memory source(have, engine(), const_cast<float*>(data));
  if (have == want) return source;
  memory converted(want, engine(), scratch.take(want.get_size()));
  dnnl::reorder(source, converted).execute(stream(), source, converted);
  return converted;
}

// The output of a product: in place, or in a buffer that is then converted.
class Target {
 public:
  Target(const memory::desc& have, float* data, const memory::desc& want, Scratch& scratch)
      : target_(have, engine(), data),
        written_(have == want ? target_ : memory(want, engine(), scratch.take(want.get_size()))) {}
  const memory& written() const { return written_; }
  void put() {
    if (target_.get_data_handle() == written_.get_data_handle()) return;
    dnnl::reorder(written_, target_).execute(stream(), written_, target_);
  }

 private:
  memory target_, written_;
};

void run(const Primitive& p, Arguments arguments, Scratch& scratch) {
  arguments.insert(
      {DNNL_ARG_SCRATCHPAD, memory(p.scratchpad, engine(), scratch.take(p.scratchpad.get_size()))});
  p.run.execute(stream(), arguments);
  stream().wait();
}

template <class Body>
void guard(const ConvolutionShape& s, const Body& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN's convolution failed with '{}' on images {} and a weight {}",
                            error.what(), s.input_shape().to_string(),
                            s.weight_shape().to_string()));
  }
}

class OnednnConvolution final : public ConvolutionProvider {
 public:
  explicit OnednnConvolution(ConvolutionAlgorithm algorithm) : algorithm_(algorithm) {}

  void forward(const ConvolutionShape& s, ConstImages x, const float* weight, const float* bias,
               Images y) const override {
    guard(s, [&] {
      const auto p = primitive(Kind::Forward, s, algorithm_, bias != nullptr);
      Scratch scratch;
      Target target(images(s, true, tag_of(y.order)), y.data, p->y, scratch);
      Arguments arguments{
          {DNNL_ARG_SRC, wanted(images(s, false, tag_of(x.order)), x.data, p->x, scratch)},
          {DNNL_ARG_WEIGHTS, wanted(weight_of(s, false), weight, p->weight, scratch)},
          {DNNL_ARG_DST, target.written()}};
      if (bias != nullptr) {
        const memory::desc d({s.out_channels}, memory::data_type::f32, memory::format_tag::a);
        arguments.insert({DNNL_ARG_BIAS, memory(d, engine(), const_cast<float*>(bias))});
      }
      run(*p, std::move(arguments), scratch);
      target.put();
    });
  }

  void input_gradient(const ConvolutionShape& s, ConstImages dy, const float* weight,
                      Images dx) const override {
    guard(s, [&] {
      const auto p = primitive(Kind::InputGradient, s, algorithm_, false);
      Scratch scratch;
      Target target(images(s, false, tag_of(dx.order)), dx.data, p->x, scratch);
      run(*p,
          {{DNNL_ARG_DIFF_DST, wanted(images(s, true, tag_of(dy.order)), dy.data, p->y, scratch)},
           {DNNL_ARG_WEIGHTS, wanted(weight_of(s, false), weight, p->weight, scratch)},
           {DNNL_ARG_DIFF_SRC, target.written()}},
          scratch);
      target.put();
    });
  }

  void weight_gradient(const ConvolutionShape& s, ConstImages dy, ConstImages x,
                       float* gradient) const override {
    guard(s, [&] {
      const auto p = primitive(Kind::WeightGradient, s, algorithm_, false);
      Scratch scratch;
      Target target(weight_of(s, false), gradient, p->weight, scratch);
      run(*p,
          {{DNNL_ARG_DIFF_DST, wanted(images(s, true, tag_of(dy.order)), dy.data, p->y, scratch)},
           {DNNL_ARG_SRC, wanted(images(s, false, tag_of(x.order)), x.data, p->x, scratch)},
           {DNNL_ARG_DIFF_WEIGHTS, target.written()}},
          scratch);
      target.put();
    });
  }

 private:
  ConvolutionAlgorithm algorithm_;
};

}  // namespace

const ConvolutionProvider& onednn_convolution(ConvolutionAlgorithm algorithm) {
  static const OnednnConvolution direct(ConvolutionAlgorithm::Direct);
  static const OnednnConvolution winograd(ConvolutionAlgorithm::Winograd);
  return algorithm.is_winograd ? winograd : direct;
}

bool onednn_has_winograd(const ConvolutionShape& shape) {
  bool has_it = false;
  guard(shape, [&] { has_it = make_winograd(Kind::Forward, shape, false) != nullptr; });
  return has_it;
}

}  // namespace lacuna

#endif  // LACUNA_HAVE_DNNL
