#include "lacuna/framework/kernels/pointwise/aged_adam.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/pointwise/aged_adam_reference.hpp"

namespace lacuna::aged_adam_test {
namespace {

// Arrays of an update, with ages from 0 to 40, in runs and mixed.
template <class T>
struct AgedArrays {
  std::vector<T> values, gradient, first, second;
  std::vector<uint16_t> ages;

  explicit AgedArrays(size_t size) {
    const CounterRng rng(1, "aged_adam");
    for (size_t i = 0; i < size; ++i) {
      values.push_back(static_cast<float>(rng.normal(5 * i)));
      gradient.push_back(static_cast<float>(rng.normal(5 * i + 1) * 0.1));
      first.push_back(static_cast<float>(rng.normal(5 * i + 2) * 0.1));
      second.push_back(static_cast<float>(std::abs(rng.normal(5 * i + 3)) * 0.01));
      ages.push_back(static_cast<uint16_t>(i / 20 % 2 == 0 ? 40 : rng.bits(5 * i + 4) % 41));
    }
  }
};

const AdamCoefficients kCoefficients{.retain = 0.999f,
                                     .l2 = 0.02f,
                                     .beta1 = 0.9f,
                                     .one_minus_beta1 = 0.1f,
                                     .beta2 = 0.99f,
                                     .one_minus_beta2 = 0.01f,
                                     .step_size = 0.05f,
                                     .root_scale = 1.5f,
                                     .eps = 1e-6f};

struct Tables {
  std::vector<float> step_scales, root_scales;
  Tables() {
    for (int age = 0; age < 40; ++age) {
      const double t = std::max(age, 1);
      step_scales.push_back(static_cast<float>(1.0 / (1.0 - std::pow(0.9, t))));
      root_scales.push_back(static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.99, t))));
    }
  }
  AgedFactors factors(int32_t shared_from) const {
    return {.step_scales = step_scales,
            .root_scales = root_scales,
            .step = 0.04f,
            .shared_from = shared_from};
  }
};

std::vector<size_t> aged_sizes() {
  std::vector<size_t> all{1000, 16384 + 3};
  for (size_t size = 0; size <= 70; ++size) all.push_back(size);
  return all;
}

void update(const AgedFactors& factors, AgedArrays<float>& x) {
  aged_adam_update(kCoefficients, factors, x.values, x.gradient, x.first, x.second, x.ages);
}

TEST(AgedAdamUpdate, AgreesWithTheReferenceForEverySize) {
  const Tables tables;
  for (const bool has_roots : {true, false}) {
    for (const int32_t shared_from : {0, 1, 17, 40}) {
      AgedFactors factors = tables.factors(shared_from);
      if (!has_roots) factors.root_scales = {};
      for (const size_t size : aged_sizes()) {
        AgedArrays<float> x(size);
        AgedArrays<double> exact(size);
        update(factors, x);
        aged_adam_update_reference<double>(kCoefficients, factors, exact.values, exact.gradient,
                                           exact.first, exact.second, exact.ages);
        ASSERT_EQ(x.ages, exact.ages);
        for (size_t i = 0; i < size; ++i) {
          // A few roundings of terms below 4.
          ASSERT_NEAR(x.values[i], exact.values[i], 4e-6) << i << " of " << size;
          ASSERT_NEAR(x.first[i], exact.first[i], 1e-6);
          ASSERT_NEAR(x.second[i], exact.second[i], 1e-6);
        }
      }
    }
  }
}

TEST(AgedAdamUpdate, OldWeightsAreUpdatedToTheSameBitsAsWithoutAges) {
  const Tables tables;
  AgedArrays<float> x(1003), plain(1003);
  const std::vector<uint16_t> before = x.ages;
  update(tables.factors(20), x);
  adam_update(kCoefficients, plain.values, plain.gradient, plain.first, plain.second);
  int young = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const bool is_young = before[i] + 1 < 20;
    young += is_young ? 1 : 0;
    ASSERT_EQ(x.values[i] == plain.values[i], !is_young) << i;
    ASSERT_EQ(x.first[i], plain.first[i]);
    ASSERT_EQ(x.second[i], plain.second[i]);
    ASSERT_EQ(x.ages[i], std::min(before[i] + 1, 40));
  }
  EXPECT_GT(young, 100);
}

TEST(AgedAdamUpdate, DependsNeitherOnThePlaceNorOnTheThreads) {
  const Tables tables;
  const int saved = num_threads();
  set_num_threads(1);
  AgedArrays<float> whole(100003);
  update(tables.factors(30), whole);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    AgedArrays<float> x(100003);
    update(tables.factors(30), x);
    EXPECT_EQ(x.values, whole.values);
    EXPECT_EQ(x.ages, whole.ages);
  }
  set_num_threads(saved);
  AgedArrays<float> part(77), all(77);
  const auto tail = [](auto& v) { return std::span(v).last(13); };
  update(tables.factors(30), all);
  aged_adam_update(kCoefficients, tables.factors(30), tail(part.values), tail(part.gradient),
                   tail(part.first), tail(part.second), tail(part.ages));
  EXPECT_THAT(std::vector<float>(part.values.end() - 13, part.values.end()),
              testing::ElementsAreArray(all.values.end() - 13, all.values.end()));
}

}  // namespace
}  // namespace lacuna::aged_adam_test
