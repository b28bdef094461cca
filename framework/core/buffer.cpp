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
std::atomic<int64_t> highest_bytes{0};  // as peak_bytes, never reset

void raise_to(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (seen < value && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepsBlocks = false;  // the sanitizer must see every free
#else
constexpr bool kKeepsBlocks = true;
#endif
constexpr int64_t kCacheBytes = int64_t{64} << 20;
constexpr size_t kSmallestCached = 4096;  // malloc itself is good at smaller ones

// Of free blocks: some for small programs, and for large ones as much as they have given back since
// they used most. So what a training step frees on its way is there for the next step, whose
// activations may be hundreds of megabytes each, and the program never holds more than it has once
// used, or 64 MiB besides.
int64_t cache_limit(int64_t in_use) {
  return std::max(kCacheBytes, highest_bytes.load(std::memory_order_relaxed) - in_use);
}

// Free blocks by size, cache_limit() of them at most. Where that is exceeded, the sizes that have
// not been used for longest go first: those that are no longer asked for do not stay.
class BlockCache {
 public:
  void* take(size_t bytes) {
    if (bytes < kSmallestCached) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(bytes);
    if (found == free_.end()) return nullptr;
    void* block = found->second.blocks.back();
    found->second.blocks.pop_back();
    found->second.last_use = ++uses_;
    if (found->second.blocks.empty()) free_.erase(found);
    held_ -= static_cast<int64_t>(bytes);
    return block;
  }

  // Whether the block was kept.
  bool keep(void* block, size_t bytes, int64_t limit) {
    const auto size = static_cast<int64_t>(bytes);
    if (!kKeepsBlocks || bytes < kSmallestCached || size > limit) return false;
    const std::lock_guard lock(mutex_);
    shrink(limit - size);
    try {
      Blocks& same = free_[bytes];
      same.blocks.push_back(block);
      same.last_use = ++uses_;
    } catch (const std::bad_alloc&) {
      return false;
    }
    held_ += size;
    return true;
  }

  void shrink_to(int64_t limit) {
    const std::lock_guard lock(mutex_);
    shrink(limit);
  }

 private:
  struct Blocks {
    std::vector<void*> blocks;
    uint64_t last_use = 0;
  };

  void shrink(int64_t limit) {
    while (held_ > limit && !free_.empty()) {
      const auto oldest = std::ranges::min_element(
          free_, {}, [](const auto& entry) { return entry.second.last_use; });
      std::free(oldest->second.blocks.back());
      oldest->second.blocks.pop_back();
      held_ -= static_cast<int64_t>(oldest->first);
      if (oldest->second.blocks.empty()) free_.erase(oldest);
    }
  }

  std::mutex mutex_;
  std::unordered_map<size_t, Blocks> free_;  // no list is empty
  uint64_t uses_ = 0;
  int64_t held_ = 0;  // bytes
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
  const auto counted = static_cast<int64_t>(size);
  const int64_t in_use = current_bytes.fetch_add(counted, std::memory_order_relaxed) + counted;
  void* block = cache().take(size);
  if (block == nullptr) {
    cache().shrink_to(cache_limit(in_use));
    block = allocate(size);
  }
  if (block == nullptr) {
    current_bytes.fetch_sub(counted, std::memory_order_relaxed);
    throw std::bad_alloc();
  }
  raise_to(largest_bytes, counted);
  raise_to(peak_bytes, in_use);
  raise_to(highest_bytes, in_use);
  return block;
}

void internal::return_block(void* block, size_t bytes) {
  if (block == nullptr) return;
  const size_t size = padded(bytes);
  const auto counted = static_cast<int64_t>(size);
  const int64_t in_use = current_bytes.fetch_sub(counted, std::memory_order_relaxed) - counted;
  if (!cache().keep(block, size, cache_limit(in_use))) std::free(block);
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
