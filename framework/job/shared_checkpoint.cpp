#include "lacuna/framework/job/shared_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

// Nobody else's: what has that name, which an ended process may have left, goes. Returns errno.
int write_new_file(const std::string& path, std::string_view bytes) {
  ::unlink(path.c_str());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return errno;
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
    if (count == 0) error = ENOSPC;
    if (count < 0 && errno != EINTR) error = errno;
  }
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
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
  std::error_code none, missing;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(missing);
  if (missing) {
    throw StateError(
        "there is no folder for a temporary copy of the run's checkpoint (set TMPDIR): " +
        missing.message());
  }
  kept_ = (folder / fmt::format("lacuna-{}-{}.h5", ::getpid(), job->rank())).string();
  if (const int error = write_new_file(kept_, bytes); error != 0) {
    std::filesystem::remove(kept_, none);
    throw StateError(
        fmt::format("cannot write '{}', a temporary copy of the run's checkpoint (set TMPDIR to "
                    "another folder): {}",
                    kept_, std::strerror(error)));
  }
  file_.emplace(kept_);
}

SharedCheckpoint::~SharedCheckpoint() {
  std::error_code none;
  if (!kept_.empty()) std::filesystem::remove(kept_, none);
}

}  // namespace lacuna
