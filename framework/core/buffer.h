// Buffer: the aligned memory behind a tensor, and the count of what is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

namespace lacuna {

/// Bytes held by live Buffers in this process. Tests use `largest` to show that nothing of dense
/// size is allocated.
struct MemoryStats {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t largest = 0;  ///< largest single allocation since the last reset
};
MemoryStats memory_stats();
/// Sets peak to current, and largest to zero.
void reset_memory_peak();

/// Thrown if there is no memory for a Buffer: a std::bad_alloc that knows the bytes.
class BufferError : public std::bad_alloc {
 public:
  /// *Effect:* records the bytes that all Buffers hold.
  explicit BufferError(size_t bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[120];
};

/// "out of memory", with the bytes if `error` knows them.
std::string describe(const std::bad_alloc& error);

namespace internal {
/// Allocates the memory of a Buffer of this many bytes. *Errors:* BufferError.
void* take_block(size_t bytes);
/// *Requires* the number of bytes that it was allocated with.
void return_block(void* block, size_t bytes);
}  // namespace internal

/// A block of memory aligned to 64 bytes (a cache line, an AVX-512 vector), padded to a multiple of
/// it, and readable for 16 bytes past the end: kernels fetch four floats at a time. Contents start
/// unspecified. *Errors:* BufferError.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kReadable = 16;  ///< past the end

  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;  // padding included
};

}  // namespace lacuna
