#include "lacuna/framework/data/formats/byte_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {

// One gzip stream being unpacked. zlib's gzread is not used since it ignores what follows a stream.
class ByteReader::Gzip {
 public:
  explicit Gzip(ByteReader& reader) : reader_(reader), input_(64 * 1024) {
    // 15: the largest window; + 16: a gzip header and nothing else.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  size_t read(std::span<uint8_t> out) {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      if (stream_.avail_in == 0) refill();
      const size_t wanted = std::min<size_t>(out.size() - done, 1 << 30);
      stream_.next_out = out.data() + done;
      stream_.avail_out = static_cast<uInt>(wanted);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      done += wanted - stream_.avail_out;
      if (status == Z_STREAM_END) {
        end();
      } else if (status != Z_OK) {
        fail(std::string("the gzip stream is damaged (") +
             (stream_.msg != nullptr ? stream_.msg : "no reason given") + ")");
      }
    }
    return done;
  }

 private:
  void refill() {
    const size_t count = reader_.read_raw(input_);
    if (count == 0) fail("the gzip stream ends before its data does: the file is truncated");
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(count);
  }

  void end() {
    ended_ = true;
    uint8_t next = 0;
    if (stream_.avail_in > 0) {
      next = *stream_.next_in;
    } else if (reader_.read_raw({&next, 1}) == 0) {
      return;
    }
    constexpr uint8_t kGzipBegin = 0x1f;
    if (next != kGzipBegin) fail("there are bytes after the end of the gzip stream");
    throw DataError(
        reader_.path_.string() +
        ": the file has more than one gzip stream; decompress it, and compress it again as one");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(reader_.path_.string() + ": " + what + "; download the file again");
  }

  ByteReader& reader_;
  std::vector<uint8_t> input_;
  z_stream stream_{};
  bool ended_ = false;
};

ByteReader::ByteReader(std::filesystem::path path)
    : path_(std::move(path)), file_(nullptr, std::fclose) {
  if (const std::string reason = why_no_file(path_.string()); !reason.empty()) {
    throw DataError(path_.string() + ": " + reason + " of data");
  }
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (file_ == nullptr) {
    throw DataError(path_.string() + ": cannot be opened: " + std::strerror(errno));
  }
  if (path_.extension() == ".gz") gzip_ = std::make_unique<Gzip>(*this);
}

ByteReader::~ByteReader() = default;

size_t ByteReader::read(std::span<uint8_t> out) {
  return gzip_ != nullptr ? gzip_->read(out) : read_raw(out);
}

size_t ByteReader::read_raw(std::span<uint8_t> out) {
  const size_t count = std::fread(out.data(), 1, out.size(), file_.get());
  if (count < out.size() && std::ferror(file_.get()) != 0) {
    throw DataError(path_.string() + ": cannot be read: " + std::strerror(errno));
  }
  return count;
}

}  // namespace lacuna
