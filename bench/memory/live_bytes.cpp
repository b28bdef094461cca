// Replaces the global operator new and delete by ones that count. Buffers are counted by lacuna;
// their peak between two calls of these operators, while everything else is constant, is asked for
// and reset at each call: so the peak of the sum is exact (with one thread).
#include "memory/live_bytes.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <string>

#include "lacuna/framework/core/buffer.h"

namespace {

std::mutex mutex;    // of all three
int64_t others = 0;  // bytes that operator new has given out
int64_t peak = 0;
int64_t largest = 0;

// To be called before and after whatever changes `others`, with the mutex held.
void look() {
  const lacuna::MemoryStats buffers = lacuna::memory_stats();
  peak = std::max(peak, others + buffers.peak);
  largest = std::max(largest, buffers.largest);
  lacuna::reset_memory_peak();
}

// Null where there is no memory.
void* allocate(size_t bytes, size_t alignment) noexcept {
  const std::lock_guard lock(mutex);
  look();
  const size_t multiple = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* block = alignment <= alignof(std::max_align_t) ? std::malloc(multiple)
                                                       : std::aligned_alloc(alignment, multiple);
  if (block == nullptr) return nullptr;
  others += static_cast<int64_t>(malloc_usable_size(block));
  largest = std::max(largest, static_cast<int64_t>(bytes));
  look();
  return block;
}

void* required(void* block) { return block != nullptr ? block : throw std::bad_alloc(); }

void release(void* block) noexcept {
  if (block == nullptr) return;
  const std::lock_guard lock(mutex);
  look();
  others -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}

int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != key + ":") continue;
    int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

// Not inlined: compilers compare what they see of new and delete, and malloc is not new.
[[gnu::noinline]] void* operator new(size_t bytes) { return required(allocate(bytes, 1)); }
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return required(allocate(bytes, static_cast<size_t>(alignment)));
}
[[gnu::noinline]] void operator delete(void* block) noexcept { release(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { release(block); }
[[gnu::noinline]] void operator delete(void* block, const std::nothrow_t&) noexcept {
  release(block);
}
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { release(block); }
[[gnu::noinline]] void operator delete(void* block, size_t, std::align_val_t) noexcept {
  release(block);
}

namespace lacuna::bench {

int64_t live_bytes() {
  const std::lock_guard lock(mutex);
  return others + memory_stats().current;
}

int64_t peak_live_bytes() {
  const std::lock_guard lock(mutex);
  look();
  return peak;
}

int64_t largest_allocation() {
  const std::lock_guard lock(mutex);
  look();
  return largest;
}

void reset_peak() {
  const std::lock_guard lock(mutex);
  reset_memory_peak();
  peak = others + memory_stats().current;
  largest = 0;
}

int64_t resident_bytes() { return status_bytes("VmRSS"); }
int64_t most_resident_bytes() { return status_bytes("VmHWM"); }

}  // namespace lacuna::bench
