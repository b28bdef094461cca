#include "lacuna/framework/data/formats/token_sequence.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/formats/mapped_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

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
      throw DataError(
          fmt::format("{}: {} bytes are not a whole number of 16-bit tokens; the file is "
                      "truncated, or not a token file",
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
    throw DataError(
        fmt::format("{}: the token {} at position {} (byte {}) is outside of the vocabulary's [0, "
                    "{}); data.vocab_size sets the number of tokens",
                    file_.path().string(), token, at, 2 * at, vocabulary_size_));
  }

  MappedFile file_;
  int64_t vocabulary_size_;
};

}  // namespace

double share_of(int64_t id, const TokenSequence& tokens, int64_t begin, int64_t end) {
  constexpr int64_t kAtOnce = int64_t{1} << 16;
  std::vector<int64_t> ids;
  int64_t count = 0;
  for (int64_t at = begin; at < end; at += kAtOnce) {
    ids.resize(static_cast<size_t>(std::min(kAtOnce, end - at)));
    tokens.read(at, ids);
    count += std::ranges::count(ids, id);
  }
  return static_cast<double>(count) / static_cast<double>(end - begin);
}

TokensInMemory::TokensInMemory(int64_t vocabulary_size)
    : is_short_(vocabulary_size <= int64_t{1} << 16) {}

void TokensInMemory::reserve(int64_t count) {
  const int64_t needed = count * (is_short_ ? 2 : 4), left = available_memory();
  if (needed > left) {
    throw DataError(
        fmt::format("its {} tokens need {}, but the free memory holds {}; use the tokenizer "
                    "`bytes` or token files (`type: tokens`), which can stay on the disk",
                    count, bytes_in_words(needed), bytes_in_words(left)));
  }
  const auto size = static_cast<size_t>(count);
  is_short_ ? short_ids_.reserve(size) : ids_.reserve(size);
}

void TokensInMemory::append(std::span<const int64_t> ids) {
  const auto add_to = [&](auto& held) { held.insert(held.end(), ids.begin(), ids.end()); };
  is_short_ ? add_to(short_ids_) : add_to(ids_);
}

int64_t TokensInMemory::size() const {
  return static_cast<int64_t>(is_short_ ? short_ids_.size() : ids_.size());
}

void TokensInMemory::read(int64_t begin, std::span<int64_t> out) const {
  const auto copy = [&](const auto& held) {
    std::copy_n(held.begin() + begin, out.size(), out.begin());
  };
  is_short_ ? copy(short_ids_) : copy(ids_);
}

TokenSequencePtr tokens_in_memory(std::span<const int64_t> ids, int64_t vocabulary_size) {
  auto tokens = std::make_shared<TokensInMemory>(vocabulary_size);
  tokens->append(ids);
  return tokens;
}

TokenSequencePtr bytes_of_files(std::span<const fs::path> paths) {
  return std::make_shared<const BytesOfFiles>(paths);
}

TokenSequencePtr tokens_of_file(const fs::path& path, int64_t vocabulary_size) {
  return std::make_shared<const TokensOfFile>(path, vocabulary_size);
}

}  // namespace lacuna
