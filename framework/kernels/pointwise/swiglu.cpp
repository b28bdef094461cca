// One exponential and one division per element of y. Tasks have about 16384 elements; long rows are
// split.
#include "lacuna/framework/kernels/pointwise/swiglu.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/swiglu_reference.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/pointwise/swiglu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/pointwise/logistic.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void swiglu_range(const float* gate, const float* up, float* y, int64_t count) {
  const auto gated = [](Vector g, Vector u)
                         HWY_ATTR { return hn::Mul(hn::Mul(g, logistic(g).value), u); };
  map(gated, count, y, gate, up);
}

void swiglu_gradient_range(const float* gate, const float* up, const float* dy, float* d_gate,
                           float* d_up, int64_t count) {
  const auto of_gate = [](Vector g, Vector u, Vector d) HWY_ATTR {
    const Logistic p = logistic(g);
    return hn::Mul(hn::Mul(d, u), hn::Mul(p.value, hn::MulAdd(g, p.rest, constant(1.0))));
  };
  const auto of_up = [](Vector g, Vector d)
                         HWY_ATTR { return hn::Mul(d, hn::Mul(g, logistic(g).value)); };
  map(of_gate, count, d_gate, gate, up, dy);
  map(of_up, count, d_up, gate, dy);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(swiglu_range);
HWY_EXPORT(swiglu_gradient_range);

// Calls body(row, begin, end) for parts of rows of about kElementsPerTask elements or whole rows.
template <class Body>
void for_each_part(int64_t rows, int64_t count, const Body& body) {
  if (count == 0) return;
  const int64_t parts = (count + kElementsPerTask - 1) / kElementsPerTask;
  parallel_for(rows * parts, rows_per_task(count), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % parts * kElementsPerTask;
      body(i / parts, begin, std::min(count, begin + kElementsPerTask));
    }
  });
}

}  // namespace

void swiglu(int64_t rows, int64_t count, const float* x, float* y) {
  if (use_reference_kernels()) return reference::swiglu(rows, count, x, y);
  const auto range = HWY_DYNAMIC_DISPATCH(swiglu_range);
  for_each_part(rows, count, [&](int64_t row, int64_t begin, int64_t end) {
    const float* gate = x + row * 2 * count + begin;
    range(gate, gate + count, y + row * count + begin, end - begin);
  });
}

void swiglu_gradient(int64_t rows, int64_t count, const float* x, const float* dy, float* dx) {
  if (use_reference_kernels()) return reference::swiglu_gradient(rows, count, x, dy, dx);
  const auto range = HWY_DYNAMIC_DISPATCH(swiglu_gradient_range);
  for_each_part(rows, count, [&](int64_t row, int64_t begin, int64_t end) {
    const int64_t at = row * 2 * count + begin;
    range(x + at, x + at + count, dy + row * count + begin, dx + at, dx + at + count, end - begin);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
