#include "lacuna/framework/data/formats/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  const std::string other = why_no_file(path_.string());  // a pipe would be waited for
  if (!other.empty()) throw DataError(path_.string() + ": " + other + " of data");
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("cannot be opened");
  struct stat status {};
  const bool is_known = ::fstat(descriptor, &status) == 0;
  if (is_known && S_ISREG(status.st_mode) && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    bytes_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  }
  const int reason = errno;
  ::close(descriptor);
  if (!is_known || bytes_ == MAP_FAILED) {
    bytes_ = nullptr;
    errno = reason;
    fail("cannot be read");
  }
  if (!S_ISREG(status.st_mode)) throw DataError(path_.string() + ": is not a file");
  if (size_ == 0) throw DataError(path_.string() + ": the file is empty");
}

MappedFile::~MappedFile() {
  if (bytes_ != nullptr) ::munmap(bytes_, size_);
}

void MappedFile::fail(const char* what) const {
  throw DataError(path_.string() + ": " + what + ": " + std::strerror(errno));
}

}  // namespace lacuna
