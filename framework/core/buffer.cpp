#include "lacuna/framework/core/buffer.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace lacuna {
namespace {

std::atomic<int64_t> current_bytes{0};
std::atomic<int64_t> peak_bytes{0};
std::atomic<int64_t> largest_bytes{0};

void raise_to(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (seen < value && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

MemoryStats memory_stats() { return {current_bytes, peak_bytes, largest_bytes}; }

void reset_memory_peak() {
  peak_bytes = current_bytes.load();
  largest_bytes = 0;
}

Buffer::Buffer(size_t bytes) : bytes_((bytes + kAlignment - 1) / kAlignment * kAlignment) {
  if (bytes_ < bytes) throw std::bad_alloc();
  if (bytes_ == 0) return;
  data_ = std::aligned_alloc(kAlignment, bytes_);
  if (data_ == nullptr) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(bytes_);
  raise_to(largest_bytes, size);
  raise_to(peak_bytes, current_bytes.fetch_add(size, std::memory_order_relaxed) + size);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  std::free(data_);
  current_bytes.fetch_sub(static_cast<int64_t>(bytes_), std::memory_order_relaxed);
}

}  // namespace lacuna
