#include "lacuna/framework/core/foreign_memory.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lacuna/framework/core/foreign_block.hpp"

namespace lacuna {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMayReadPastEnd = false;  // other libraries' memory ends at its stated size
#else
constexpr bool kMayReadPastEnd = true;
#endif
constexpr uintptr_t kPage = 4096;  // the smallest pages that there are

}  // namespace

Tensor tensor_over(const Shape& shape, float* data, std::shared_ptr<const void> owner) {
  const auto count = static_cast<size_t>(shape.numel());
  const uintptr_t end = reinterpret_cast<uintptr_t>(data + count) % kPage;
  if (!kMayReadPastEnd || count == 0 || end == 0 || end + Buffer::kReadable > kPage) {
    return Tensor::from(shape, {data, count});
  }
  const internal::ForeignBlock block(data, std::move(owner));
  return Tensor::empty(shape);
}

}  // namespace lacuna
