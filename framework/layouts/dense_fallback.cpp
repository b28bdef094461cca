#include "lacuna/framework/layouts/dense_fallback.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

struct Fallback {
  std::mutex mutex;
  FallbackPolicy policy = FallbackPolicy::Dense;
  std::function<void(const std::string&)> notice = [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
  };
  std::set<std::string> announced;
};

Fallback& fallback() {
  static Fallback state;
  return state;
}

/// A dense copy of the weight.
struct DenseCopy {
  explicit DenseCopy(const WeightView& weight)
      : pattern(Pattern::dense(weight.pattern.shape())),
        values(weight.pattern.layout().to_dense(weight.pattern, weight.values)) {}
  WeightView view() const {
    return {.pattern = *pattern, .values = values.storage(), .version = 0, .derived = nullptr};
  }

  PatternPtr pattern;
  Tensor values;
};

// Selects the pattern's part of a gradient.
void take_from_dense(const Pattern& pattern, const Tensor& dense, Accumulate accumulate,
                     std::span<float> gradient) {
  if (accumulate == Accumulate::No) {
    pattern.layout().from_dense(pattern, dense.storage(), gradient);
    return;
  }
  Tensor part = Tensor::empty(Shape{pattern.stored_size()});
  pattern.layout().from_dense(pattern, dense.storage(), part.mutable_storage());
  lacuna::accumulate(part.storage(), gradient);
}

/// Convolutions with a dense copy of the weight.
class DenseCopyConvolutions final : public ConvolutionProducts {
 public:
  Order order(const ConvolutionShape& shape) const override { return dense(shape).order(shape); }
  Tensor forward(const WeightView& weight, const ConvolutionShape& shape, const Tensor& x,
                 const Tensor& bias, ChannelStatistics* statistics) const override {
    return dense(shape).forward(DenseCopy(weight).view(), shape, x, bias, statistics);
  }
  Tensor input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                        const Tensor& dy) const override {
    return dense(shape).input_gradient(DenseCopy(weight).view(), shape, dy);
  }
  void weight_gradient(const Pattern& pattern, const ConvolutionShape& shape, const Tensor& dy,
                       const Tensor& x, Accumulate accumulate,
                       std::span<float> gradient) const override {
    const PatternPtr whole = Pattern::dense(pattern.shape());
    Tensor all = Tensor::empty(pattern.shape());
    dense(shape).weight_gradient(*whole, shape, dy, x, Accumulate::No, all.mutable_storage());
    take_from_dense(pattern, all, accumulate, gradient);
  }

 private:
  static const ConvolutionProducts& dense(const ConvolutionShape& shape) {
    return dense_layout().convolutions(shape);
  }
};

}  // namespace

void set_fallback_policy(FallbackPolicy policy) {
  const std::lock_guard lock(fallback().mutex);
  fallback().policy = policy;
}

void set_fallback_notice(std::function<void(const std::string&)> notice) {
  const std::lock_guard lock(fallback().mutex);
  fallback().notice = std::move(notice);
}

void DenseFallbackLayout::announce(const char* product) const {
  const std::string what = "layout '" + std::string(name()) + "' has no " + product;
  const std::lock_guard lock(fallback().mutex);
  if (fallback().policy == FallbackPolicy::Error) {
    throw StateError(what + ", and falling back to dense is switched off (train.layout_fallback)");
  }
  if (!fallback().announced.insert(what).second) return;
  fallback().notice(what + ": the weight is made dense for it, at a dense product's cost");
}

const ConvolutionProducts& Layout::convolutions(const ConvolutionShape&) const {
  static const DenseCopyConvolutions products;
  return products;
}

Tensor DenseFallbackLayout::forward(const WeightView& weight, const Tensor& x,
                                    const Tensor& bias) const {
  announce("forward product");
  return dense_layout().forward(DenseCopy(weight).view(), x, bias);
}

Tensor DenseFallbackLayout::input_gradient(const WeightView& weight, const Tensor& dy) const {
  announce("input gradient");
  return dense_layout().input_gradient(DenseCopy(weight).view(), dy);
}

void DenseFallbackLayout::weight_gradient(const Pattern& pattern, const Tensor& dy, const Tensor& x,
                                          Accumulate accumulate, std::span<float> gradient) const {
  announce("weight gradient");
  const PatternPtr whole = Pattern::dense(pattern.shape());
  Tensor dense = Tensor::empty(pattern.shape());
  dense_layout().weight_gradient(*whole, dy, x, Accumulate::No, dense.mutable_storage());
  take_from_dense(pattern, dense, accumulate, gradient);
}

}  // namespace lacuna
