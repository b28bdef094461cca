#include "lacuna/framework/job/shared_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw StateError("cannot read '" + path + "'");
  return bytes;
}

// A file without a name in any folder: it is gone with its last descriptor, however this process
// ends. Returns its descriptor, or below 0 with errno.
int open_nameless(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string path = folder + "/lacuna-XXXXXX";  // a file system that has none: named for a moment
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

// Returns errno.
int write_bytes(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
    if (count == 0) return ENOSPC;
    if (count < 0 && errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

SharedCheckpoint::SharedCheckpoint(Communicator* job, std::optional<CheckpointFile> file)
    : file_(std::move(file)) {
  if (job == nullptr || job->size() == 1) return;
  const bool is_first = job->rank() == 0;
  const std::string bytes = job->from_first(is_first && file_ ? read_bytes(file_->path()) : "");
  if (is_first) return;
  file_.reset();
  if (bytes.empty()) return;
  std::error_code missing;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(missing);
  if (missing) {
    throw StateError(
        "there is no folder for a temporary copy of the run's checkpoint (set TMPDIR): " +
        missing.message());
  }
  kept_.descriptor = open_nameless(folder.string());
  const int error = kept_.descriptor < 0 ? errno : write_bytes(kept_.descriptor, bytes);
  if (error != 0) {
    throw StateError(fmt::format(
        "cannot write into '{}', for a temporary copy of the run's checkpoint (set TMPDIR "
        "to another folder): {}",
        folder.string(), std::strerror(error)));
  }
  file_.emplace(fmt::format("/proc/self/fd/{}", kept_.descriptor));
}

SharedCheckpoint::Kept::~Kept() {
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace lacuna
