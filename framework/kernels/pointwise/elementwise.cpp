// Bound by memory: one vector per iteration suffices. A block of 16384 floats is 64 KiB per array,
// large enough to hide the start of a thread and small enough for the second-level cache.
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/elementwise_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void arithmetic_range(Arithmetic operation, float factor, const float* a, const float* b, float* y,
                      int64_t count) {
  const Vector f = constant(factor);
  switch (operation) {
    case Arithmetic::Add:
      return map([](Vector u, Vector v) HWY_ATTR { return hn::Add(u, v); }, count, y, a, b);
    case Arithmetic::Subtract:
      return map([](Vector u, Vector v) HWY_ATTR { return hn::Sub(u, v); }, count, y, a, b);
    case Arithmetic::Multiply:
      return map([](Vector u, Vector v) HWY_ATTR { return hn::Mul(u, v); }, count, y, a, b);
    case Arithmetic::Scale:
      return map([f](Vector u) HWY_ATTR { return hn::Mul(f, u); }, count, y, a);
    case Arithmetic::Approach:
      return map([f](Vector u, Vector v) HWY_ATTR { return hn::MulAdd(f, hn::Sub(u, v), v); },
                 count, y, a, b);
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(arithmetic_range);

void run(Arithmetic operation, float factor, std::span<const float> a, std::span<const float> b,
         std::span<float> y) {
  if (a.size() != y.size() || b.size() != y.size()) {
    throw ShapeError(fmt::format("elementwise arithmetic on arrays of {}, {} and {} elements",
                                 a.size(), b.size(), y.size()));
  }
  const auto range = use_reference_kernels() ? reference::arithmetic<float>
                                             : HWY_DYNAMIC_DISPATCH(arithmetic_range);
  parallel_for(static_cast<int64_t>(y.size()), kElementsPerTask, [&](int64_t begin, int64_t end) {
    range(operation, factor, a.data() + begin, b.data() + begin, y.data() + begin, end - begin);
  });
}

}  // namespace

void add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  run(Arithmetic::Add, 1.0f, a, b, y);
}
void subtract(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  run(Arithmetic::Subtract, 1.0f, a, b, y);
}
void multiply(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  run(Arithmetic::Multiply, 1.0f, a, b, y);
}
void scale(float factor, std::span<const float> x, std::span<float> y) {
  run(Arithmetic::Scale, factor, x, x, y);
}
void move_towards(float share, std::span<const float> x, std::span<float> y) {
  run(Arithmetic::Approach, share, x, y, y);
}
void accumulate(std::span<const float> x, std::span<float> y) {
  run(Arithmetic::Add, 1.0f, x, y, y);
}

}  // namespace lacuna
#endif  // HWY_ONCE
