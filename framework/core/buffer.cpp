// Freed blocks are kept for the next buffer of their size: a training step asks for the same
// sizes again and again, and giving half a megabyte back to the system each time costs the page
// faults of getting it again (4 % of a dense MNIST step).
#include "lacuna/framework/core/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/framework/core/block_cache.hpp"
#include "lacuna/framework/core/foreign_block.hpp"

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
constexpr bool kKeepsBlocks = false;  // the sanitizer must see every free
#else
constexpr bool kKeepsBlocks = true;
#endif
constexpr int64_t kCacheBytes = int64_t{64} << 20;
constexpr size_t kSmallestCached = 4096;  // malloc itself is good at smaller ones

// Free blocks by size. Small programs keep some; large ones keep what they have given back since
// they used most, and half of that in addition: what a training step frees on its way is there for
// the next step, whose activations may be hundreds of megabytes each. The half is because a step
// does not use most of every size at the same time: with a quarter, a dense step of WRN-16-2 gave
// back 360 large pages and got them again, cleared (AMD Zen 4). Beyond that, the sizes that have
// not been used for longest go first: those that are no longer asked for do not stay.
class BlockCache {
 public:
  // A block, or null where there is none and one must be allocated: it counts as used either way.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    in_use_ += static_cast<int64_t>(bytes);
    const auto found = free_.find(bytes);
    if (found == free_.end()) {
      shrink(limit());
      return nullptr;
    }
    void* block = found->second.blocks.back();
    found->second.blocks.pop_back();
    found->second.last_use = ++uses_;
    if (found->second.blocks.empty()) free_.erase(found);
    held_ -= static_cast<int64_t>(bytes);
    return block;
  }

  // Takes a block back; whether it was kept.
  bool keep(void* block, size_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    const std::lock_guard lock(mutex_);
    highest_ = std::max(highest_, in_use_);
    in_use_ -= size;
    if (!kKeepsBlocks || bytes < kSmallestCached || size > limit()) return false;
    shrink(limit() - size);
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

  // Frees what is kept.
  void give_back() {
    const std::lock_guard lock(mutex_);
    shrink(0);
  }

  // A block that was to be taken could not be allocated.
  void forget(size_t bytes) {
    const std::lock_guard lock(mutex_);
    in_use_ -= static_cast<int64_t>(bytes);
  }

  int64_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  struct Blocks {
    std::vector<void*> blocks;
    uint64_t last_use = 0;
  };

  int64_t limit() const { return std::max(kCacheBytes, highest_ + highest_ / 2 - in_use_); }

  void shrink(int64_t most) {
    while (held_ > most && !free_.empty()) {
      const auto oldest = std::ranges::min_element(
          free_, {}, [](const auto& entry) { return entry.second.last_use; });
      std::free(oldest->second.blocks.back());
      oldest->second.blocks.pop_back();
      held_ -= static_cast<int64_t>(oldest->first);
      if (oldest->second.blocks.empty()) free_.erase(oldest);
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<size_t, Blocks> free_;
  uint64_t uses_ = 0;
  int64_t in_use_ = 0, highest_ = 0, held_ = 0;  // bytes
};

BlockCache& block_cache() {
  static BlockCache* cache = new BlockCache;  // never destroyed: static tensors may outlive it
  return *cache;
}

constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMedium = size_t{2} << 20, kLarge = size_t{32} << 20;

// The bytes asked of the system for a buffer of so many. Large blocks are rounded up by a sixteenth
// at most, so that activations which differ by little, as those of two storage orders or of a last
// batch, use each other's; what is never touched takes no memory.
size_t block_size(size_t bytes) {
  if (bytes < kLarge) return bytes;
  const size_t step = std::max(kLargePage, std::bit_floor(bytes) / 16);
  return (bytes + step - 1) / step * step;
}

// Blocks from medium size on lie in large pages where the system has them: activations of many
// features or channels are read all over, and each small page costs a walk of its own. What is left
// of a medium block after its last whole one stays in small pages, or a few kilobytes would take
// two megabytes.
void* allocate(size_t bytes) {
  const size_t alignment = bytes < kMedium ? Buffer::kAlignment : kLargePage;
  void* block = nullptr;
  if (posix_memalign(&block, alignment, bytes) != 0) return nullptr;
  if (bytes >= kMedium) {
    // A wish: not granted is no error.
    madvise(block, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  }
  return block;
}

}  // namespace

MemoryStats memory_stats() { return {current_bytes, peak_bytes, largest_bytes}; }

int64_t kept_block_bytes() { return block_cache().held(); }

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

BufferError::BufferError(size_t bytes) noexcept {
  constexpr double kMegabyte = 1e6;
  std::snprintf(text_, sizeof text_,
                "out of memory: %.1f MB more were requested, and %.1f MB are in use",
                static_cast<double>(bytes) / kMegabyte,
                static_cast<double>(memory_stats().current) / kMegabyte);
}

std::string describe(const std::bad_alloc& error) {
  const auto* of_buffer = dynamic_cast<const BufferError*>(&error);
  return of_buffer == nullptr ? "out of memory" : of_buffer->what();
}

void* internal::take_block(size_t bytes) {
  const size_t size = padded(bytes);
  const size_t whole = block_size(size);
  if (size < bytes || whole < size) throw BufferError(bytes);  // rounded up beyond 64 bits
  void* block = block_cache().take(whole);
  if (block == nullptr) block = allocate(whole);
  if (block == nullptr) {
    block_cache().give_back();
    block = allocate(whole);
  }
  if (block == nullptr) {
    block_cache().forget(whole);
    throw BufferError(bytes);
  }
  const auto counted = static_cast<int64_t>(size);
  raise_to(largest_bytes, counted);
  raise_to(peak_bytes, current_bytes.fetch_add(counted, std::memory_order_relaxed) + counted);
  return block;
}

void internal::return_block(void* block, size_t bytes) {
  if (block == nullptr) return;
  const size_t size = padded(bytes);
  current_bytes.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (!block_cache().keep(block, block_size(size))) std::free(block);
}

namespace {

thread_local internal::ForeignBlock* foreign_memory = nullptr;

// The owners of the foreign memory that Buffers are over, by its address. Of several at one address
// each keeps all of it.
class ForeignOwners {
 public:
  void add(void* data, std::shared_ptr<const void> owner) {
    const std::lock_guard lock(mutex_);
    owners_.emplace(data, std::move(owner));
    count_.fetch_add(1, std::memory_order_release);
  }

  // Whether the memory was foreign; then one of its owners lets it go.
  bool release(void* data) {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    std::shared_ptr<const void> owner;  // ends without the lock: it may call anything
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(data);
    if (found == owners_.end()) return false;
    owner = std::move(found->second);
    owners_.erase(found);
    count_.fetch_sub(1, std::memory_order_release);
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<void*, std::shared_ptr<const void>> owners_;
  std::atomic<int64_t> count_{0};
};

ForeignOwners& foreign_owners() {
  static ForeignOwners* owners = new ForeignOwners;  // never destroyed, as the cache
  return *owners;
}

}  // namespace

namespace internal {

ForeignBlock::ForeignBlock(void* data, std::shared_ptr<const void> owner)
    : data_(data), owner_(std::move(owner)) {
  foreign_memory = this;
}
ForeignBlock::~ForeignBlock() { foreign_memory = nullptr; }

}  // namespace internal

Buffer::Buffer(size_t bytes) {
  if (bytes == 0) return;
  if (foreign_memory != nullptr) {
    data_ = foreign_memory->data();
    foreign_owners().add(data_, foreign_memory->take_owner());
  } else {
    data_ = internal::take_block(bytes);
  }
  bytes_ = padded(bytes);
}

Buffer::~Buffer() {
  if (data_ == nullptr || foreign_owners().release(data_)) return;
  internal::return_block(data_, bytes_ - kReadable);
}

}  // namespace lacuna
