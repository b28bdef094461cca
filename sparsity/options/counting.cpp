#include "lacuna/sparsity/options/counting.hpp"

#include <algorithm>

namespace lacuna {

int64_t target_nnz(float sparsity, int64_t numel) {
  const float clamped = std::clamp(sparsity, 0.0f, 1.0f);
  const auto count = static_cast<int64_t>((1.0f - clamped) * static_cast<float>(numel));
  return std::min(count, numel);  // float32 may round numel itself up
}

int64_t kept_after_drop(float drop_fraction, int64_t nnz, int64_t groups) {
  const float clamped = std::clamp(drop_fraction, 0.0f, 1.0f);
  const float kept = (1.0f - clamped) * static_cast<float>(nnz) / static_cast<float>(groups);
  return std::min(static_cast<int64_t>(kept), nnz);
}

}  // namespace lacuna
