#include "lacuna/framework/data/formats/token_sequence.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/mapped_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class TokensInMemory final : public TokenSequence {
 public:
  explicit TokensInMemory(std::span<const int64_t> ids) : ids_(ids.begin(), ids.end()) {}
  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    std::copy_n(ids_.begin() + begin, out.size(), out.begin());
  }

 private:
  std::vector<int32_t> ids_;
};

class BytesOfFiles final : public TokenSequence {
 public:
  explicit BytesOfFiles(std::span<const fs::path> paths) {
    for (const fs::path& path : paths) {
      files_.push_back(std::make_unique<const MappedFile>(path));
      ends_.push_back(size() + static_cast<int64_t>(files_.back()->bytes().size()));
    }
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
    for (size_t done = 0; done < out.size(); ++file) {
      const std::span<const uint8_t> bytes = files_[file]->bytes();
      const int64_t file_begin = ends_[file] - static_cast<int64_t>(bytes.size());
      const auto at = static_cast<size_t>(begin + static_cast<int64_t>(done) - file_begin);
      const size_t count = std::min(out.size() - done, bytes.size() - at);
      std::copy_n(bytes.begin() + static_cast<int64_t>(at), count,
                  out.begin() + static_cast<int64_t>(done));
      done += count;
    }
  }

 private:
  std::vector<std::unique_ptr<const MappedFile>> files_;
  std::vector<int64_t> ends_;  // in the sequence, of each file
};

class TokensOfFile final : public TokenSequence {
 public:
  TokensOfFile(const fs::path& path, int64_t vocabulary_size)
      : file_(path), vocabulary_size_(vocabulary_size) {
    if (file_.bytes().size() % 2 != 0) {
      throw DataError(fmt::format(
          "{}: {} bytes are not a whole number of 16-bit tokens; the file is cut off, or no file "
          "of tokens",
          path.string(), file_.bytes().size()));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(file_.bytes().size() / 2); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    const uint8_t* bytes = file_.bytes().data() + 2 * begin;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
      if (out[i] >= vocabulary_size_) refuse(out[i], begin + static_cast<int64_t>(i));
    }
  }

 private:
  [[noreturn]] void refuse(int64_t token, int64_t at) const {
    throw DataError(fmt::format(
        "{}: the token {} at position {} (byte {}) is outside of the vocabulary's [0, {}); "
        "data.vocab_size says how many there are",
        file_.path().string(), token, at, 2 * at, vocabulary_size_));
  }

  MappedFile file_;
  int64_t vocabulary_size_;
};

}  // namespace

TokenSequencePtr tokens_in_memory(std::span<const int64_t> ids) {
  return std::make_shared<const TokensInMemory>(ids);
}

TokenSequencePtr bytes_of_files(std::span<const fs::path> paths) {
  return std::make_shared<const BytesOfFiles>(paths);
}

TokenSequencePtr tokens_of_file(const fs::path& path, int64_t vocabulary_size) {
  return std::make_shared<const TokensOfFile>(path, vocabulary_size);
}

}  // namespace lacuna
