#include "lacuna/framework/job/shared_checkpoint.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace

SharedCheckpoint::SharedCheckpoint(Communicator* job, std::optional<CheckpointFile> file)
    : file_(std::move(file)) {
  if (job == nullptr || job->size() == 1) return;
  const bool is_first = job->rank() == 0;
  const std::string bytes = job->from_first(is_first && file_ ? read_bytes(file_->path()) : "");
  if (is_first) return;
  file_.reset();
  if (bytes.empty()) return;
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(none);
  kept_ = (folder / fmt::format("lacuna-{}-{}.h5", ::getpid(), job->rank())).string();
  std::ofstream stream(kept_, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) {
    std::filesystem::remove(kept_, none);
    throw StateError("cannot write '" + kept_ + "', which holds the checkpoint meanwhile");
  }
  file_.emplace(kept_);
}

SharedCheckpoint::~SharedCheckpoint() {
  std::error_code none;
  if (!kept_.empty()) std::filesystem::remove(kept_, none);
}

}  // namespace lacuna
