#include "lacuna/framework/layouts/cost/step_timer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/dense/convolution.hpp"
#include "lacuna/framework/kernels/float_instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"
#include "lacuna/framework/kernels/select/draws.hpp"
#include "lacuna/framework/layouts/cost/convolution_sample.hpp"
#include "lacuna/framework/layouts/cost/position_sample.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

// A larger weight is measured by a sample of this size, and the cost is scaled with the elements.
constexpr int64_t kMostFeaturesTimed = 1024;

// A side of the sample: as large as the weight's up to a limit, and divisible as the pattern needs.
int64_t sampled_side(int64_t side, int64_t divisor) {
  const int64_t most = std::max(kMostFeaturesTimed / divisor * divisor, divisor);
  return std::min(side, most);
}

Tensor random(const Shape& shape, std::string_view name, Order order = Order::RowMajor) {
  DrawnWords words(CounterRng(0, name));
  Tensor tensor = Tensor::empty(shape, order);
  for (float& value : tensor.mutable_storage()) {
    value = 2.0f * CounterRng::uniform_of(words.next()) - 1.0f;
  }
  tensor.clear_padding();
  return tensor;
}

void update(Tensor& values, const Tensor& gradient, Tensor& first, Tensor& second) {
  adam_update({.beta1 = 0.9f,
               .one_minus_beta1 = 0.1f,
               .beta2 = 0.999f,
               .one_minus_beta2 = 0.001f,
               .root_scale = 1.0f,
               .eps = 1e-8f},
              values.mutable_storage(), gradient.storage(), first.mutable_storage(),
              second.mutable_storage());
}

// One layout's step: the work of a linear layer and Adam on the weight.
class Step {
 public:
  Step(const WeightClass& c, PatternPtr pattern)
      : pattern_(std::move(pattern)),
        values_(random(Shape{pattern_->stored_size()}, "values")),
        gradient_(random(values_.shape(), "gradient")),
        first_(Tensor::zeros(values_.shape())),
        second_(Tensor::zeros(values_.shape())) {
    const Order order = pattern_->layout().order(c.batch, std::max(c.out, c.in));
    x_ = random(Shape{c.batch, c.in}, "x", order);
    dy_ = random(Shape{c.batch, c.out}, "dy", order);
  }

  void operator()() {
    const Layout& layout = pattern_->layout();
    const WeightView weight{.pattern = *pattern_,
                            .values = values_.storage(),
                            .version = ++version_,
                            .derived = &derived_};
    layout.forward(weight, x_, Tensor());
    layout.input_gradient(weight, dy_);
    layout.weight_gradient(*pattern_, dy_, x_, Accumulate::No, gradient_.mutable_storage());
    update(values_, gradient_, first_, second_);
  }

 private:
  PatternPtr pattern_;
  Tensor values_, gradient_, first_, second_, x_, dy_;
  DerivedValues derived_;
  uint64_t version_ = 0;
};

// The work of a convolution and Adam on the weight.
class ConvolutionStep {
 public:
  ConvolutionStep(const ConvolutionShape& shape, PatternPtr pattern)
      : shape_(shape),
        pattern_(std::move(pattern)),
        values_(random(pattern_->stored_shape(), "values")),
        gradient_(random(values_.shape(), "gradient")),
        first_(Tensor::zeros(values_.shape())),
        second_(Tensor::zeros(values_.shape())) {
    const Layout& layout = pattern_->layout();
    ConvolutionShape output = shape;
    output.in_channels = shape.out_channels;
    x_ = random(shape.input_shape(), "x", layout.convolutions(shape).order(shape));
    dy_ = random(shape.output_shape(), "dy", layout.convolutions(output).order(output));
  }

  void operator()() {
    const ConvolutionProducts& products = pattern_->layout().convolutions(shape_);
    const WeightView weight{
        .pattern = *pattern_, .values = values_.storage(), .version = ++version_};
    products.forward(weight, shape_, x_, Tensor());
    products.input_gradient(weight, shape_, dy_);
    products.weight_gradient(*pattern_, shape_, dy_, x_, Accumulate::No,
                             gradient_.mutable_storage());
    update(values_, gradient_, first_, second_);
  }

 private:
  ConvolutionShape shape_;
  PatternPtr pattern_;
  Tensor values_, gradient_, first_, second_, x_, dy_;
  uint64_t version_ = 0;
};

// One product of a dense convolution.
class DenseProduct {
 public:
  DenseProduct(const WeightClass& c, ConvolutionAlgorithm algorithm)
      : product_(c.product),
        shape_(*c.convolution),
        pattern_(Pattern::dense(shape_.weight_shape())),
        values_(random(pattern_->shape(), "values")),
        gradient_(random(pattern_->shape(), "gradient")) {
    shape_.algorithms = {algorithm, algorithm, algorithm};
    ConvolutionShape output = shape_;
    output.in_channels = shape_.out_channels;
    x_ = random(shape_.input_shape(), "x", products().order(shape_));
    dy_ = random(shape_.output_shape(), "dy", products().order(output));
  }

  void operator()() {
    const WeightView weight{.pattern = *pattern_, .values = values_.storage(), .version = 1};
    switch (product_) {
      case WeightClass::Product::InputGradient:
        products().input_gradient(weight, shape_, dy_);
        return;
      case WeightClass::Product::WeightGradient:
        products().weight_gradient(*pattern_, shape_, dy_, x_, Accumulate::No,
                                   gradient_.mutable_storage());
        return;
      default:
        products().forward(weight, shape_, x_, Tensor());
    }
  }

 private:
  const ConvolutionProducts& products() const { return dense_layout().convolutions(shape_); }

  WeightClass::Product product_;
  ConvolutionShape shape_;
  PatternPtr pattern_;
  Tensor values_, gradient_, x_, dy_;
};

// The same for a pattern for one step.
class NewPatternStep {
 public:
  NewPatternStep(const WeightClass& c, const Layout& layout, BitMask mask)
      : layout_(layout),
        mask_(std::move(mask)),
        master_(random(Shape{c.out, c.in}, "values")),
        x_(random(Shape{c.batch, c.in}, "x")),
        dy_(random(Shape{c.batch, c.out}, "dy")) {}

  void operator()() {
    const PatternPtr pattern =
        Pattern::make(layout_, master_.shape(), mask_, PatternLifetime::OneStep);
    Tensor values = Tensor::empty(pattern->stored_shape());
    layout_.from_dense(*pattern, master_.storage(), values.mutable_storage());
    DerivedValues derived;
    const WeightView weight{
        .pattern = *pattern, .values = values.storage(), .version = 1, .derived = &derived};
    layout_.forward(weight, x_, Tensor());
    layout_.input_gradient(weight, dy_);
  }

 private:
  const Layout& layout_;
  BitMask mask_;
  Tensor master_, x_, dy_;
};

template <class Step>
double milliseconds(Step& step) {
  const auto start = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Alternates the two, so that other load affects both, and keeps the minimum of each: noise only
// adds time.
template <class Step>
LayoutCosts time_in_turn(Step masked, Step compressed) {
  const FlushDenormals flush;
  milliseconds(masked);
  milliseconds(compressed);
  LayoutCosts least{.masked_ms = INFINITY, .compressed_ms = INFINITY};
  double total = 0.0;
  for (int turn = 0; turn < 2 || (total < 1000.0 && turn < 5) || (total < 20.0 && turn < 15);
       ++turn) {
    const double masked_ms = milliseconds(masked), compressed_ms = milliseconds(compressed);
    least.masked_ms = std::min(least.masked_ms, masked_ms);
    least.compressed_ms = std::min(least.compressed_ms, compressed_ms);
    total += masked_ms + compressed_ms;
  }
  return least;
}

}  // namespace

LayoutCosts time_steps(const WeightClass& c) {
  const OneThread alone;
  if (c.product != WeightClass::Product::Step) {
    return time_in_turn(DenseProduct(c, ConvolutionAlgorithm::Direct),
                        DenseProduct(c, winograd_for(*c.convolution)));
  }
  if (c.convolution) {
    const Shape weight = c.convolution->weight_shape();
    const Positions sample =
        sample_positions({}, Shape{matrix_rows(weight), matrix_columns(weight)}, c.density());
    const Positions here(weight, {sample.row_begin().begin(), sample.row_begin().end()},
                         sample.column());
    return time_in_turn(
        ConvolutionStep(*c.convolution, Pattern::make(masked_layout(), weight, here)),
        ConvolutionStep(*c.convolution, Pattern::make(*c.compressed, weight, here)));
  }
  const Shape shape{c.out, c.in};
  const Positions positions = sample_positions(c.compressed->pattern_shape(), shape, c.density());
  if (c.lifetime == PatternLifetime::OneStep) {
    const BitMask mask = positions.to_mask();
    return time_in_turn(NewPatternStep(c, masked_layout(), mask),
                        NewPatternStep(c, *c.compressed, mask));
  }
  return time_in_turn(Step(c, Pattern::make(masked_layout(), shape, positions)),
                      Step(c, Pattern::make(*c.compressed, shape, positions)));
}

double WeightClass::density() const { return std::exp2(-0.5 * half_powers); }

std::string WeightClass::key() const {
  std::ostringstream text;
  if (convolution) {
    const Window& w = convolution->window;
    text << "conv/" << convolution->in_channels << "x" << convolution->out_channels << "/"
         << convolution->image.to_string() << "/" << w.kernel.to_string() << "/"
         << w.stride.to_string() << "/" << w.padding.to_string() << "/" << w.dilation.to_string()
         << "/" << convolution->batch << "/" << half_powers << "/" << float_instruction_set();
    if (product != Product::Step) text << "/product" << static_cast<int>(product);
    return text.str();
  }
  text << out << "x" << in << "/" << batch << "/" << half_powers << "/" << float_instruction_set();
  if (compressed != &csr_layout()) text << "/" << compressed->name();
  if (lifetime == PatternLifetime::OneStep) text << "/one step";
  std::string key = text.str();
  std::ranges::replace(key, ' ', '_');
  return key;
}

WeightClass class_of(const Layout& compressed, PatternLifetime lifetime, const Shape& shape,
                     int half_powers, int64_t rows) {
  const Shape divisors = compressed.pattern_shape().divisors();
  return {.compressed = &compressed,
          .lifetime = lifetime,
          .out = sampled_side(shape[0], divisors[0]),
          .in = sampled_side(shape[1], divisors[1]),
          .batch = std::min(rows, kMostTimedRows),
          .half_powers = half_powers};
}

WeightClass class_of(const ConvolutionShape& shape, int half_powers) {
  WeightClass c{.compressed = &csr_layout(),
                .half_powers = half_powers,
                .convolution = convolution_sample(shape)};
  c.convolution->algorithms = {};
  return c;
}

}  // namespace lacuna
