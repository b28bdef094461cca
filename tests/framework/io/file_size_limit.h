// A stand-in for a full disk that needs no root: while one of these lives, no file of this process
// can grow beyond a size (writes fail with EFBIG).
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <cstdint>

namespace lacuna {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(int64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(bytes);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace lacuna
