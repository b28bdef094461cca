// Array: a vector for arrays as long as a weight's nonzeros, allocated and freed at every update.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "lacuna/framework/core/buffer.h"

namespace lacuna {

/// Allocates memory as Buffers do: aligned to 64 bytes, counted in memory_stats, and kept after it
/// is freed for the next array of the same size, which saves the page faults of a new allocation.
/// Elements created without a value are unspecified.
template <class T>
class BlockAllocator {
 public:
  static_assert(std::is_trivial_v<T>, "elements start unspecified");
  using value_type = T;

  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) {}  // NOLINT: converting, as allocators are rebound

  T* allocate(size_t count) {
    if (count > static_cast<size_t>(-1) / sizeof(T)) throw BufferError(static_cast<size_t>(-1));
    return static_cast<T*>(internal::take_block(count * sizeof(T)));
  }
  void deallocate(T* block, size_t count) { internal::return_block(block, count * sizeof(T)); }

  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};

/// A std::vector whose elements are not zeroed: `Array<float>(n)` and `resize(n)` leave new ones
/// unspecified; `Array<float>(n, 0.0f)` does not. For trivial types.
template <class T>
using Array = std::vector<T, BlockAllocator<T>>;

}  // namespace lacuna
