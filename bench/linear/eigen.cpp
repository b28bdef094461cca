// Which of Eigen's variants runs: the best that the active instruction set allows.
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "linear/eigen_variants.h"

namespace lacuna::bench {
namespace {

EigenVariant variant() {
#if LACUNA_BENCH_EIGEN_AVX2
  if (active_instruction_set().starts_with("avx")) return eigen_avx2();
#endif
  return eigen_baseline();
}

}  // namespace

LinearContenderPtr make_eigen_sparse(const LinearWorkload& workload) {
  return variant().make(workload);
}

std::string eigen_version() {
  const bool is_baseline = variant().make == eigen_baseline().make;
  return variant().version + (is_baseline ? ", as compiled for any machine" : ", AVX2 and FMA");
}

}  // namespace lacuna::bench
