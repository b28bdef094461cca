// TokenSequence: a long sequence of tokens, in memory or in files that are mapped into it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace lacuna {

/// Tokens that any thread may read from.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual int64_t size() const = 0;
  /// Copies the tokens from `begin` on to `out`. *Requires* that there are as many.
  /// *Errors:* DataError, with file and position, on a token outside of the vocabulary.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;
};

using TokenSequencePtr = std::shared_ptr<const TokenSequence>;

/// The fraction of the tokens [begin, end) that are this one. *Requires* 0 ≤ begin < end ≤ size.
double share_of(int64_t id, const TokenSequence& tokens, int64_t begin, int64_t end);

/// Held in memory, and added to until others see it: 2 bytes a token of a vocabulary of at most
/// 65536, else 4. *Requires* ids in [0, vocabulary_size), which is at most 2³¹.
class TokensInMemory final : public TokenSequence {
 public:
  explicit TokensInMemory(int64_t vocabulary_size);
  /// Reserves memory for the given total. *Errors:* DataError where there is no memory for them.
  void reserve(int64_t count);
  void append(std::span<const int64_t> ids);
  int64_t size() const override;
  void read(int64_t begin, std::span<int64_t> out) const override;

 private:
  bool is_short_;
  std::vector<uint16_t> short_ids_;  // one of both
  std::vector<int32_t> ids_;
};

TokenSequencePtr tokens_in_memory(std::span<const int64_t> ids,
                                  int64_t vocabulary_size = int64_t{1} << 31);

/// The bytes of files, one after the other, each byte a token. They are mapped, not read: what is
/// looked at comes into memory, and leaves it when that is scarce. The files must not change.
/// *Errors:* DataError with the path when a file cannot be opened or mapped, or is empty.
TokenSequencePtr bytes_of_files(std::span<const std::filesystem::path> paths);

/// The tokens of a file of 16-bit numbers, the low byte first, mapped as in bytes_of_files; they
/// are held against the vocabulary when they are read. *Errors:* DataError also when the file has
/// half a token at its end.
TokenSequencePtr tokens_of_file(const std::filesystem::path& path, int64_t vocabulary_size);

}  // namespace lacuna
