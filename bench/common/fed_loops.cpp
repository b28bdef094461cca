// Sixteen sums, so that a multiply-add's latency hides behind the fifteen others: two a cycle with
// a latency of four or five need ten.
#include "common/fed_loops.h"

#include <array>

#include "lacuna/framework/kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/fed_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

struct Sums {
  Vector s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15;

  // s = s · factor + operand(i), of which sixteen follow each other.
  template <class Operand>
  HWY_INLINE void step(Vector factor, const Operand& operand) {
    s0 = hn::MulAdd(operand(0), factor, s0), s1 = hn::MulAdd(operand(1), factor, s1);
    s2 = hn::MulAdd(operand(2), factor, s2), s3 = hn::MulAdd(operand(3), factor, s3);
    s4 = hn::MulAdd(operand(4), factor, s4), s5 = hn::MulAdd(operand(5), factor, s5);
    s6 = hn::MulAdd(operand(6), factor, s6), s7 = hn::MulAdd(operand(7), factor, s7);
    s8 = hn::MulAdd(operand(8), factor, s8), s9 = hn::MulAdd(operand(9), factor, s9);
    s10 = hn::MulAdd(operand(10), factor, s10), s11 = hn::MulAdd(operand(11), factor, s11);
    s12 = hn::MulAdd(operand(12), factor, s12), s13 = hn::MulAdd(operand(13), factor, s13);
    s14 = hn::MulAdd(operand(14), factor, s14), s15 = hn::MulAdd(operand(15), factor, s15);
  }
  HWY_INLINE float total() const {
    const Vector a = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                             hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    const Vector b = hn::Add(hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)),
                             hn::Add(hn::Add(s12, s13), hn::Add(s14, s15)));
    return hn::GetLane(hn::SumOfLanes(Floats(), hn::Add(a, b)));
  }
};

// No two begin alike, or the compiler would add up one for all.
Sums first_sums() {
  const auto s = [](int i) HWY_ATTR { return hn::Set(Floats(), static_cast<float>(i)); };
  return {s(0), s(1), s(2),  s(3),  s(4),  s(5),  s(6),  s(7),
          s(8), s(9), s(10), s(11), s(12), s(13), s(14), s(15)};
}

float fed(const float* data, int64_t elements, int64_t rounds, float factor_value) {
  const Floats d;
  const int64_t lanes = lane_count();
  const Vector factor = hn::Set(d, factor_value);
  Sums sums = first_sums();
  for (int64_t round = 0; round < rounds; ++round) {
    for (const float* x = data; x < data + elements; x += 16 * lanes) {
      sums.step(factor, [=](int64_t i) HWY_ATTR { return hn::Load(d, x + i * lanes); });
    }
  }
  return sums.total();
}

float from_registers(int64_t elements, int64_t rounds, float factor_value) {
  const int64_t lanes = lane_count();
  const Vector factor = hn::Set(Floats(), factor_value);
  const Vector operand = hn::Set(Floats(), 1.0f - factor_value);
  Sums sums = first_sums();
  for (int64_t step = 0; step < rounds * (elements / (16 * lanes)); ++step) {
    sums.step(factor, [=](int64_t) HWY_ATTR { return operand; });
  }
  return sums.total();
}

float read(const float* data, int64_t elements) {
  const Floats d;
  const int64_t lanes = lane_count();
  Vector a = hn::Zero(d), b = a, c = a, e = a;
  for (const float* x = data; x < data + elements; x += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, x)), b = hn::Add(b, hn::Load(d, x + lanes));
    c = hn::Add(c, hn::Load(d, x + 2 * lanes)), e = hn::Add(e, hn::Load(d, x + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(fed);
HWY_EXPORT(from_registers);
HWY_EXPORT(read);

// Unknown to the compiler.
volatile float factor = 1e-3f;

}  // namespace

namespace bench {

float fed_loop(std::span<const float> data, int64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(fed)(data.data(), std::ssize(data), rounds, factor);
}

float register_loop(int64_t elements, int64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(from_registers)(elements, rounds, factor);
}

float read_loop(std::span<const float> data) {
  return HWY_DYNAMIC_DISPATCH(read)(data.data(), std::ssize(data));
}

}  // namespace bench
}  // namespace lacuna
#endif
