#include "lacuna/framework/io/storage/file_system.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "lacuna/framework/io/storage/leftovers.hpp"

namespace lacuna {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

[[noreturn]] void fail(const std::string& path, int error) {
  throw StateError("cannot write '" + path + "': " + std::strerror(error));
}

// An open file; closing it reports no error, which matters only before it is flushed.
class Descriptor {
 public:
  // `named`: what an error calls it.
  Descriptor(const std::string& path, int flags, const std::string& named)
      : value_(::open(path.c_str(), flags, kMode)) {
    if (value_ < 0) fail(named, errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(value_); }
  int get() const { return value_; }

 private:
  int value_;
};

void flush_descriptor(int descriptor, const std::string& path) {
  // Some file systems cannot flush folders and return EINVAL.
  if (::fsync(descriptor) != 0 && errno != EINVAL) fail(path, errno);
}

// Returns errno, or 0.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

// Puts `made` at `path`, at which there is a folder, and returns where that is now: in one step
// where the file system can do that, else in two.
std::string exchange_folders(const std::string& made, const std::string& path) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    return made;
  }
  if (errno != EINVAL && errno != ENOSYS) fail(path, errno);
  const std::string old = made + "-old";
  if (std::rename(path.c_str(), old.c_str()) != 0) fail(path, errno);
  if (std::rename(made.c_str(), path.c_str()) != 0) {
    const int error = errno;
    if (std::rename(old.c_str(), path.c_str()) != 0) fail(path, errno);
    fail(path, error);
  }
  return old;
}

// Renames; 0, or errno.
int rename_error(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// Renames to a name at which there is nothing: EEXIST if there is, where the file system can tell.
int new_name_error(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  return errno == EINVAL || errno == ENOSYS ? rename_error(from, to) : errno;
}

}  // namespace

FileReplacement::FileReplacement(std::string path) : path_(std::move(path)) {
  const std::string name = std::filesystem::path(path_).filename().string();
  if (name.empty()) throw StateError("cannot write '" + path_ + "': it does not name a file");
  // A pipe or a device would be replaced by a file, for everybody.
  if (const std::string why = why_no_file(path_); !why.empty()) {
    throw StateError("cannot write '" + path_ + "': it " + why);
  }
  remove_leftovers(path_);
  temporary_ = temporary_beside(path_);
  ::unlink(temporary_.c_str());
}

FileReplacement::~FileReplacement() {
  if (!is_done_) ::unlink(temporary_.c_str());
}

void FileReplacement::flush() const {
  const Descriptor file(temporary_, O_RDONLY | O_CLOEXEC, path_);
  flush_descriptor(file.get(), path_);
}

void FileReplacement::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, errno);
  is_done_ = true;
  const std::string folder = folder_of(path_).string();
  const Descriptor opened(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, folder);
  flush_descriptor(opened.get(), folder);
}

FolderReplacement::FolderReplacement(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  const std::string name = std::filesystem::path(path_).filename().string();
  if (name.empty() || name == "." || name == "..") {
    throw StateError("cannot write '" + path + "': it does not name a new folder");
  }
  std::error_code error;
  if (std::filesystem::is_symlink(path_, error) && std::filesystem::is_directory(path_, error)) {
    path_ = std::filesystem::canonical(path_, error).string();
    if (error) throw StateError("cannot write '" + path + "': " + error.message());
  }
  remove_leftovers(path_);
  temporary_ = temporary_beside(path_);
  std::filesystem::remove_all(temporary_, error);
  std::filesystem::create_directories(temporary_, error);
  if (error) throw StateError("cannot write '" + path + "': " + error.message());
}

FolderReplacement::~FolderReplacement() {
  std::error_code ignored;
  if (!is_done_) std::filesystem::remove_all(temporary_, ignored);
}

void FolderReplacement::commit() {
  std::error_code ignored;
  const bool has_old = std::filesystem::is_directory(path_, ignored);
  const std::string old = has_old ? exchange_folders(temporary_, path_) : std::string();
  if (!has_old && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, errno);
  if (has_old) std::filesystem::remove_all(old, ignored);
  finish();
}

void FolderReplacement::commit_new() {
  // A process that begins a run holds the lock of its folder, or finds this one's files once it
  // does.
  std::error_code ignored;
  const bool has_folder = std::filesystem::is_directory(path_, ignored);
  const FolderLock lock(path_);
  bool is_taken = has_folder && !lock.is_taken();
  if (!is_taken) {
    if (has_folder) remove_temporary_files(path_);
    const int error =
        has_folder ? rename_error(temporary_, path_) : new_name_error(temporary_, path_);
    is_taken = error == ENOTEMPTY || error == EEXIST || error == ENOTDIR;
    if (error != 0 && !is_taken) fail(path_, error);
  }
  if (is_taken) {
    throw StateError("cannot write '" + path_ +
                     "': another process has written there in the meantime; choose another folder");
  }
  finish();
}

std::string FolderReplacement::in_place(std::string message) const {
  for (size_t at = message.find(temporary_); at != std::string::npos;
       at = message.find(temporary_, at + path_.size())) {
    message.replace(at, temporary_.size(), path_);
  }
  return message;
}

void FolderReplacement::finish() {
  is_done_ = true;
  const std::string folder = folder_of(path_).string();
  const Descriptor opened(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, folder);
  flush_descriptor(opened.get(), folder);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  FileReplacement replacement(path);
  {
    const Descriptor file(replacement.temporary_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                          path);
    const int error = write_all(file.get(), text);
    if (error != 0) fail(path, error);
    flush_descriptor(file.get(), path);
  }
  replacement.commit();
}

int remove_temporary_files(const std::string& folder) {
  std::error_code missing;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    const size_t tail = name.rfind(".tmp-");
    if (!name.starts_with('.') || tail == std::string::npos || tail + 5 == name.size()) continue;
    if (!std::all_of(name.begin() + static_cast<std::ptrdiff_t>(tail) + 5, name.end(),
                     [](unsigned char c) { return c >= '0' && c <= '9'; })) {
      continue;
    }
    if (entry.is_directory(missing) && !entry.is_symlink(missing)) {
      // An export into this folder, which may be going on.
      remove_leftovers(folder + "/" + name.substr(1, tail - 1));
      continue;
    }
    if (::unlink(entry.path().c_str()) != 0) fail(entry.path().string(), errno);
    ++count;
  }
  return count;
}

void require_plain_file(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return;
    fail(path, errno);
  }
  if (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) return;  // opening a folder reports it
  const char* what = S_ISLNK(facts.st_mode) ? "a link" : "a pipe or device";
  throw StateError("cannot write '" + path + "': it is " + what +
                   ", but lacuna writes to this file of a run, so it must be a regular file; move "
                   "it away, or replace it with the file itself");
}

void make_own_file(const std::string& path) {
  require_plain_file(path);
  struct stat facts {};
  const bool has_names =
      ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink > 1;
  if (!has_names) return;
  FileReplacement own(path);
  std::error_code error;
  std::filesystem::copy_file(path, own.temporary_path(), error);
  if (error) fail(path, error.value());
  own.flush();
  own.commit();
}

void truncate_file(const std::string& path, int64_t bytes) {
  make_own_file(path);
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) fail(path, errno);
  if (facts.st_size < bytes) {
    throw StateError(
        fmt::format("cannot cut '{}' back to {} bytes: it has {}", path, bytes, facts.st_size));
  }
  if (::truncate(path.c_str(), bytes) != 0) fail(path, errno);
}

JsonLines::JsonLines(std::string path) : path_(std::move(path)) {
  make_own_file(path_);
  descriptor_ =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kMode);
  if (descriptor_ < 0) fail(path_, errno);
  size_ = ::lseek(descriptor_, 0, SEEK_END);
}

JsonLines::~JsonLines() { ::close(descriptor_); }

void JsonLines::flush() const { flush_descriptor(descriptor_, path_); }

void JsonLines::write(const Config& value) {
  const std::string line = value.to_json() + "\n";
  const int error = write_all(descriptor_, line);
  if (error != 0) {
    // Should even that fail, the first error states why.
    if (::ftruncate(descriptor_, size_) != 0) fail(path_, error);
    fail(path_, error);
  }
  size_ += static_cast<int64_t>(line.size());
}

}  // namespace lacuna
