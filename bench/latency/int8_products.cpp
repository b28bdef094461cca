#include "latency/int8_products.h"

#include "common/dense_opponent.h"
#include "common/operands.h"

#if LACUNA_HAVE_DNNL

#include <dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lacuna::bench {
namespace {

using dnnl::memory;
using Type = memory::data_type;

struct BoundPrimitive {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

memory::desc of_any(const memory::dims& sizes, Type type) {
  return {sizes, type, memory::format_tag::any};
}

memory filled(const memory::desc& format, const dnnl::engine& engine) {
  memory made(format, engine);
  auto* bytes = static_cast<uint8_t*>(made.get_data_handle());
  for (size_t i = 0; i < format.get_size(); ++i) bytes[i] = static_cast<uint8_t>(1 + i % 61);
  return made;
}

dnnl::primitive_attr relu_to_bytes() {
  dnnl::post_ops after;
  after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attributes;
  attributes.set_output_scales(0, {1e-4f});
  attributes.set_post_ops(after);
  return attributes;
}

template <class Forward>
BoundPrimitive bound_product(const typename Forward::primitive_desc& chosen,
                             const dnnl::engine& engine) {
  return {.primitive = Forward(chosen),
          .arguments = {{DNNL_ARG_SRC, filled(chosen.src_desc(), engine)},
                        {DNNL_ARG_WEIGHTS, filled(chosen.weights_desc(), engine)},
                        {DNNL_ARG_BIAS, filled(chosen.bias_desc(), engine)},
                        {DNNL_ARG_DST, filled(chosen.dst_desc(), engine)}}};
}

BoundPrimitive linear_product(int64_t batch, const Shape& weight, const dnnl::engine& engine) {
  const dnnl::inner_product_forward::desc wanted(
      dnnl::prop_kind::forward_inference, of_any({batch, weight[1]}, Type::u8),
      of_any({weight[0], weight[1]}, Type::s8), of_any({weight[0]}, Type::s32),
      of_any({batch, weight[0]}, Type::u8));
  return bound_product<dnnl::inner_product_forward>({wanted, relu_to_bytes(), engine}, engine);
}

BoundPrimitive convolution_product(const ConvolutionShape& s, const dnnl::engine& engine) {
  const auto sizes = [](const Shape& shape) {
    return memory::dims{shape[0], shape[1], shape[2], shape[3]};
  };
  const memory::dims padding{s.window.padding.height, s.window.padding.width};
  const dnnl::convolution_forward::desc wanted(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      of_any(sizes(s.input_shape()), Type::u8), of_any(sizes(s.weight_shape()), Type::s8),
      of_any({s.out_channels}, Type::s32), of_any(sizes(s.output_shape()), Type::u8),
      {s.window.stride.height, s.window.stride.width}, padding, padding);
  return bound_product<dnnl::convolution_forward>({wanted, relu_to_bytes(), engine}, engine);
}

}  // namespace

struct Int8Products::Parts {
  Tensor queries, keys, scores, values, mixed;  // of a head
  int64_t heads = 0;                            // of all examples
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<BoundPrimitive> products;
};

Int8Products::Int8Products(const ServedNetwork& network, const Module& model, int64_t examples)
    : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use == WeightUse::Linear) {
      const int64_t rows = examples * network.tokens();
      p.products.push_back(linear_product(rows, parameter->shape(), p.engine));
    } else if (parameter->use == WeightUse::Convolution) {
      ConvolutionShape shape = parameter->convolution.value();
      shape.batch = examples;
      p.products.push_back(convolution_product(shape, p.engine));
    }
  }
  if (network.attention_heads == 0) return;
  const int64_t tokens = network.tokens(), d = network.example[1] / network.attention_heads;
  p.heads = examples * network.attention_heads;
  p.queries = random_tensor(Shape{tokens, d}, "queries");
  p.keys = random_tensor(Shape{tokens, d}, "keys");
  p.scores = random_tensor(Shape{tokens, tokens}, "scores");
  p.values = random_tensor(Shape{d, tokens}, "values");
  p.mixed = Tensor::empty(Shape{tokens, d});
}

bool Int8Products::are_there() { return true; }

void Int8Products::run() {
  for (const BoundPrimitive& product : parts_->products) {
    product.primitive.execute(parts_->stream, product.arguments);
  }
  parts_->stream.wait();
  for (int64_t head = 0; head < parts_->heads; ++head) {
    opponent_forward(parts_->queries, parts_->keys, parts_->scores);
    opponent_forward(parts_->scores, parts_->values, parts_->mixed);
  }
}

}  // namespace lacuna::bench

#else

namespace lacuna::bench {

struct Int8Products::Parts {};
Int8Products::Int8Products(const ServedNetwork&, const Module&, int64_t) {}
bool Int8Products::are_there() { return false; }
void Int8Products::run() {}

}  // namespace lacuna::bench

#endif

namespace lacuna::bench {

Int8Products::~Int8Products() = default;

}  // namespace lacuna::bench
