// Freed blocks are kept for the next buffer of the same size: a training step asks for the same
// sizes again and again, and giving half a megabyte back to the system each time costs the page
// faults of getting it again (4 % of a dense MNIST step).
#include "lacuna/framework/core/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

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

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kCacheBytes = 0;  // the sanitizer must see every free
#else
constexpr size_t kCacheBytes = size_t{64} << 20;
#endif
constexpr size_t kMostCacheBytes = kCacheBytes * 32;
constexpr size_t kSmallestCached = 4096;  // malloc itself is good at smaller ones

// Of free blocks: some for small programs, and for large ones as much as half of what they use,
// whose activations are of tens of megabytes each.
size_t cache_limit() {
  const auto half = static_cast<size_t>(std::max<int64_t>(current_bytes, 0)) / 2;
  return std::min(std::max(kCacheBytes, half), kMostCacheBytes);
}

// Free blocks by size, cache_limit() of them at most.
class BlockCache {
 public:
  void* take(size_t bytes) {
    if (bytes < kSmallestCached) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(bytes);
    if (found == blocks_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    cached_ -= bytes;
    return block;
  }

  // Whether the block was kept; when the cache is full it is emptied first, so that sizes which are
  // no longer asked for do not stay.
  bool keep(void* block, size_t bytes) {
    const size_t limit = cache_limit();
    if (bytes < kSmallestCached || bytes > limit / 4) return false;
    const std::lock_guard lock(mutex_);
    if (cached_ + bytes > limit) clear();
    try {
      blocks_[bytes].push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    cached_ += bytes;
    return true;
  }

 private:
  void clear() {
    for (auto& [size, list] : blocks_) {
      for (void* block : list) std::free(block);
    }
    blocks_.clear();
    cached_ = 0;
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> blocks_;
  size_t cached_ = 0;
};

BlockCache& cache() {
  static BlockCache* cache = new BlockCache;  // never destroyed: static tensors may outlive it
  return *cache;
}

// Large blocks lie in large pages where the system has them: activations of millions of features
// are read all over, and each small page costs a walk of its own.
void* allocate(size_t bytes) {
  constexpr size_t kLargePage = size_t{2} << 20, kLarge = size_t{32} << 20;
  if (bytes < kLarge) return std::aligned_alloc(Buffer::kAlignment, bytes);
  const size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  void* block = std::aligned_alloc(kLargePage, whole);
  if (block != nullptr) madvise(block, bytes, MADV_HUGEPAGE);  // a wish: not granted is no error
  return block;
}

}  // namespace

MemoryStats memory_stats() { return {current_bytes, peak_bytes, largest_bytes}; }

void reset_memory_peak() {
  peak_bytes = current_bytes.load();
  largest_bytes = 0;
}

namespace {

size_t padded(size_t bytes) {
  constexpr size_t kUnit = Buffer::kAlignment;
  return (bytes + Buffer::kReadable + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

void* internal::take_block(size_t bytes) {
  const size_t size = padded(bytes);
  if (size < bytes) throw std::bad_alloc();
  void* block = cache().take(size);
  if (block == nullptr) block = allocate(size);
  if (block == nullptr) throw std::bad_alloc();
  const auto counted = static_cast<int64_t>(size);
  raise_to(largest_bytes, counted);
  raise_to(peak_bytes, current_bytes.fetch_add(counted, std::memory_order_relaxed) + counted);
  return block;
}

void internal::return_block(void* block, size_t bytes) {
  if (block == nullptr) return;
  const size_t size = padded(bytes);
  current_bytes.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (!cache().keep(block, size)) std::free(block);
}

Buffer::Buffer(size_t bytes) {
  if (bytes == 0) return;
  data_ = internal::take_block(bytes);
  bytes_ = padded(bytes);
}

Buffer::~Buffer() {
  if (data_ != nullptr) internal::return_block(data_, bytes_ - kReadable);
}

}  // namespace lacuna
