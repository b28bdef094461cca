#include "lacuna/framework/data/formats/text_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/formats/byte_reader.hpp"

namespace lacuna {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path) {
  constexpr size_t kPiece = 1 << 20, kAsk = 16 * kPiece;
  ByteReader reader(path);
  std::error_code unknown;
  const auto size = static_cast<int64_t>(fs::file_size(path, unknown));
  const int64_t left = available_memory();
  if (!unknown && size > left) {
    throw DataError(path.string() + ": the file has " + bytes_in_words(size) +
                    ", and the free memory holds " + bytes_in_words(left));
  }
  std::string text;
  if (!unknown && path.extension() != ".gz") text.reserve(static_cast<size_t>(size) + kPiece);
  for (size_t count = kPiece; count == kPiece;) {
    const size_t begin = text.size();
    // A packed file may hold a thousand times its size.
    const auto refuse = [&] {
      throw DataError(path.string() +
                      (path.extension() == ".gz" ? ": what is packed in it" : ": the text") +
                      " is larger than the free memory");
    };
    if (begin > 0 && begin % kAsk == 0 && static_cast<int64_t>(begin) > available_memory()) {
      refuse();
    }
    try {
      text.resize(begin + kPiece);  // twice the memory, where it must move
    } catch (const std::bad_alloc&) {
      refuse();
    }
    count = reader.read({reinterpret_cast<uint8_t*>(text.data()) + begin, kPiece});
    text.resize(begin + count);
  }
  return text;
}

size_t byte_order_mark(std::string_view text, const std::string& name) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw DataError(
        name +
        ": begins with the byte order mark of UTF-16; convert it, as by iconv -f UTF-16 "
        "-t UTF-8");
  }
  return text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

std::string read_unmarked_text(const fs::path& path) {
  std::string text = read_text_file(path);
  text.erase(0, byte_order_mark(text, path.string()));
  return text;
}

std::string read_standard_input() {
  constexpr size_t kPiece = 1 << 20;
  std::string text;
  for (;;) {
    const size_t begin = text.size();
    if (static_cast<int64_t>(begin) > available_memory()) {
      throw DataError("the standard input is larger than the free memory");
    }
    text.resize(begin + kPiece);
    const ssize_t count = ::read(STDIN_FILENO, text.data() + begin, kPiece);
    text.resize(begin + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw DataError(std::string("the standard input cannot be read: ") + std::strerror(errno));
    }
    if (count == 0) return text;
  }
}

std::vector<fs::path> text_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) continue;
    std::error_code ignored;
    if (!fs::is_regular_file(at->path(), ignored)) {
      throw DataError(at->path().string() + ": neither a file nor a link to one; the folder " +
                      path.string() + " must hold only text files");
    }
    files.push_back(at->path());
  }
  if (error) throw DataError(path.string() + ": cannot be listed: " + error.message());
  if (files.empty()) throw DataError(path.string() + ": there are no files in this folder");
  std::ranges::sort(files, {}, [](const fs::path& file) { return file.filename().string(); });
  return files;
}

}  // namespace lacuna
