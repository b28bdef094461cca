// Eigen's contender, compiled for several instruction sets.
#pragma once

#include <string>

#include "linear/contender.h"

namespace lacuna::bench {

struct EigenVariant {
  LinearContenderPtr (*make)(const LinearWorkload&) = nullptr;
  std::string version;
};
EigenVariant eigen_baseline();
/// With AVX2 and FMA: x86-64 only.
EigenVariant eigen_avx2();

}  // namespace lacuna::bench
