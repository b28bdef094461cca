// So many sums that a multiply-add's latency hides behind the others, and no more than stay in
// registers: two a cycle with a latency of four need eight.
#include "common/fed_loops.h"

#include <array>

#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/fed_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kSums = 16;
#else
constexpr int kSums = 8;  // of sixteen registers
#endif

struct Sums {
  Vector of[kSums];

  // No two begin alike, or the compiler would add up one for all.
  Sums() {
    for (int i = 0; i < kSums; ++i) of[i] = hn::Set(Floats(), static_cast<float>(i));
  }
  // s = s · factor + operand(i), of which sixteen follow each other.
  template <class Operand>
  HWY_INLINE void step(Vector factor, const Operand& operand) {
    HWY_UNROLL(16)
    for (int i = 0; i < 16; ++i) of[i % kSums] = hn::MulAdd(operand(i), factor, of[i % kSums]);
  }
  float total() const {
    Vector sum = of[0];
    for (int i = 1; i < kSums; ++i) sum = hn::Add(sum, of[i]);
    return hn::GetLane(hn::SumOfLanes(Floats(), sum));
  }
};

float fed(const float* data, int64_t elements, int64_t rounds, float factor_value) {
  const Floats d;
  const int64_t lanes = lane_count();
  const Vector factor = hn::Set(d, factor_value);
  Sums sums;
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
  Sums sums;
  for (int64_t step = 0; step < rounds * (elements / (16 * lanes)); ++step) {
    sums.step(factor, [=](int64_t) HWY_ATTR { return operand; });
  }
  return sums.total();
}

float read(const float* data, int64_t elements) {
  const Floats d;
  const int64_t lanes = lane_count();
  Sums sums;
  for (Vector& sum : sums.of) sum = hn::Zero(d);
  for (const float* x = data; x < data + elements; x += kSums * lanes) {
    HWY_UNROLL(16)
    for (int i = 0; i < kSums; ++i) sums.of[i] = hn::Add(sums.of[i], hn::Load(d, x + i * lanes));
  }
  return sums.total();
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
