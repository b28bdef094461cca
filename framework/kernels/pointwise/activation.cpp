// ReLU and its square are bound by memory; the others by one exponential (about 15 instructions)
// and a reciprocal per element. Blocks have 16384 elements for all kinds, so that small arrays
// start no threads.
#include "lacuna/framework/kernels/pointwise/activation.hpp"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/activation_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/pointwise/logistic.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

// Φ(x) and e^(−x²/2). For x ≥ 0, Φ(−x) = e^(−x²/2) Q(t) with t = 1 / (1 + 0.26 x). Q has degree 9
// and interpolates at the Chebyshev points of 0 ≤ x ≤ 13.2 with a relative error of 5e-8; beyond,
// Φ(−x) underflows. ½(1 + erf) would lose all digits there.
struct Normal {
  Vector cdf, power;
};

HWY_INLINE Normal normal(Vector x) {
  constexpr float kQ[] = {0.103772679f,  0.102785637f, 0.104678703f,  0.0445678957f, 0.176181723f,
                          -0.173131448f, 0.271012269f, -0.162343587f, 0.0324761305f};
  const Vector one = constant(1.0);
  const Vector power = quick_exp_or_zero(hn::Mul(hn::Mul(x, x), constant(-0.5)));
  // Beyond 40 the power is 0. The bound also avoids the reciprocal of infinity.
  const Vector size = at_most(hn::Abs(x), 40.0f);
  const Vector t = quick_reciprocal(hn::MulAdd(size, constant(0.26), one));
  Vector q = constant(kQ[8]);
  for (int i = 7; i >= 0; --i) q = hn::MulAdd(q, t, constant(kQ[i]));
  const Vector tail = hn::Mul(power, hn::Mul(q, t));
  return {hn::IfThenElse(hn::Lt(x, constant(0.0)), tail, hn::Sub(one, tail)), power};
}

HWY_INLINE Logistic gelu_logistic(Vector x) {
  const Vector square = hn::Mul(x, x);
  const Vector inner = hn::MulAdd(constant(reference::kGeluCubic), square, constant(1.0));
  return logistic(hn::Mul(hn::Mul(constant(reference::kGeluSlope), x), inner));
}

struct Relu {
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::IfThenZeroElse(hn::Lt(x, constant(0.0)), x);
  }
  HWY_INLINE Vector operator()(Vector y, Vector dy) const {
    return hn::IfThenZeroElse(hn::Le(y, constant(0.0)), dy);
  }
};

struct Gelu {
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(x, normal(x).cdf); }
  HWY_INLINE Vector operator()(Vector x, Vector dy) const {
    const Normal n = normal(x);
    const Vector density = hn::Mul(n.power, constant(0.3989422804014327));  // 1/√(2π)
    return hn::Mul(dy, hn::MulAdd(x, density, n.cdf));
  }
};

struct GeluTanh {
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(x, gelu_logistic(x).value); }
  HWY_INLINE Vector operator()(Vector x, Vector dy) const {
    const Logistic p = gelu_logistic(x);
    const Vector slope = hn::MulAdd(constant(3.0 * reference::kGeluSlope * reference::kGeluCubic),
                                    hn::Mul(x, x), constant(reference::kGeluSlope));
    const Vector curve = hn::Mul(hn::Mul(x, p.value), p.rest);
    return hn::Mul(dy, hn::MulAdd(curve, slope, p.value));
  }
};

struct Silu {
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(x, logistic(x).value); }
  HWY_INLINE Vector operator()(Vector x, Vector dy) const {
    const Logistic p = logistic(x);
    return hn::Mul(dy, hn::Mul(p.value, hn::MulAdd(x, p.rest, constant(1.0))));
  }
};

struct Sigmoid {
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::IfThenZeroElse(hn::Lt(x, constant(kLeastLogit)), logistic(x).value);
  }
  HWY_INLINE Vector operator()(Vector y, Vector dy) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(constant(1.0), y)));
  }
};

struct Tanh {
  HWY_INLINE Vector operator()(Vector x) const { return tanh(x); }
  HWY_INLINE Vector operator()(Vector y, Vector dy) const {
    return hn::Mul(dy, hn::NegMulAdd(y, y, constant(1.0)));
  }
};

struct SquaredRelu {
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::IfThenZeroElse(hn::Lt(x, constant(0.0)), hn::Mul(x, x));
  }
  HWY_INLINE Vector operator()(Vector x, Vector dy) const {
    return hn::IfThenZeroElse(hn::Le(x, constant(0.0)), hn::Mul(dy, hn::Add(x, x)));
  }
};

template <class... Inputs>
HWY_INLINE void run(Activation kind, float* y, int64_t count, const Inputs*... x) {
  switch (kind) {
    case Activation::ReLU:
      return map(Relu(), count, y, x...);
    case Activation::GELU:
      return map(Gelu(), count, y, x...);
    case Activation::GELUTanh:
      return map(GeluTanh(), count, y, x...);
    case Activation::SiLU:
      return map(Silu(), count, y, x...);
    case Activation::Sigmoid:
      return map(Sigmoid(), count, y, x...);
    case Activation::Tanh:
      return map(Tanh(), count, y, x...);
    case Activation::SquaredReLU:
      return map(SquaredRelu(), count, y, x...);
  }
}

void activate_range(Activation kind, const float* x, float* y, int64_t count) {
  run(kind, y, count, x);
}

void activate_gradient_range(Activation kind, const float* saved, const float* dy, float* dx,
                             int64_t count) {
  run(kind, dx, count, saved, dy);
}

void leaky_relu_range(float slope, const float* x, float* y, int64_t count) {
  const Vector s = constant(slope);
  const auto leak = [s](Vector v) HWY_ATTR {
    return hn::IfThenElse(hn::Lt(v, constant(0.0)), hn::Mul(s, v), v);
  };
  map(leak, count, y, x);
}

void leaky_relu_gradient_range(float slope, const float* output, const float* dy, float* dx,
                               int64_t count) {
  const Vector s = constant(slope);
  const auto leak = [s](Vector v, Vector dv) HWY_ATTR {
    return hn::IfThenElse(hn::Le(v, constant(0.0)), hn::Mul(s, dv), dv);
  };
  map(leak, count, dx, output, dy);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(activate_range);
HWY_EXPORT(activate_gradient_range);
HWY_EXPORT(leaky_relu_range);
HWY_EXPORT(leaky_relu_gradient_range);

void require_same(size_t a, size_t b) {
  if (a != b) {
    throw ShapeError(fmt::format("an activation on arrays of {} and {} elements", a, b));
  }
}

}  // namespace

void activate(Activation kind, std::span<const float> x, std::span<float> y) {
  require_same(x.size(), y.size());
  const auto range =
      use_reference_kernels() ? reference::activate<float> : HWY_DYNAMIC_DISPATCH(activate_range);
  parallel_for(static_cast<int64_t>(y.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(kind, x.data() + begin, y.data() + begin, end - begin);
  });
}

void activate_gradient(Activation kind, std::span<const float> saved, std::span<const float> dy,
                       std::span<float> dx) {
  require_same(saved.size(), dx.size());
  require_same(dy.size(), dx.size());
  const auto range = use_reference_kernels() ? reference::activate_gradient<float>
                                             : HWY_DYNAMIC_DISPATCH(activate_gradient_range);
  parallel_for(static_cast<int64_t>(dx.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(kind, saved.data() + begin, dy.data() + begin, dx.data() + begin, end - begin);
  });
}

void leaky_relu(float slope, std::span<const float> x, std::span<float> y) {
  require_same(x.size(), y.size());
  const auto range = use_reference_kernels() ? reference::leaky_relu<float>
                                             : HWY_DYNAMIC_DISPATCH(leaky_relu_range);
  parallel_for(static_cast<int64_t>(y.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(slope, x.data() + begin, y.data() + begin, end - begin);
  });
}

void leaky_relu_gradient(float slope, std::span<const float> output, std::span<const float> dy,
                         std::span<float> dx) {
  require_same(output.size(), dx.size());
  require_same(dy.size(), dx.size());
  const auto range = use_reference_kernels() ? reference::leaky_relu_gradient<float>
                                             : HWY_DYNAMIC_DISPATCH(leaky_relu_gradient_range);
  parallel_for(static_cast<int64_t>(dx.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(slope, output.data() + begin, dy.data() + begin, dx.data() + begin, end - begin);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
