#include "lacuna/framework/data/formats/text_file.h"

#include <algorithm>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/byte_reader.h"

namespace lacuna {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path) {
  constexpr size_t kPiece = 1 << 20;
  ByteReader reader(path);
  std::string text;
  for (size_t count = kPiece; count == kPiece;) {
    const size_t begin = text.size();
    text.resize(begin + kPiece);
    count = reader.read({reinterpret_cast<uint8_t*>(text.data()) + begin, kPiece});
    text.resize(begin + count);
  }
  return text;
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
                      path.string() + " must hold files of text and nothing else");
    }
    files.push_back(at->path());
  }
  if (error) throw DataError(path.string() + ": cannot be listed: " + error.message());
  if (files.empty()) throw DataError(path.string() + ": there are no files in this folder");
  std::ranges::sort(files, {}, [](const fs::path& file) { return file.filename().string(); });
  return files;
}

}  // namespace lacuna
