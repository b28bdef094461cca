// Stands before the C library's functions: linked into a test program, or loaded into another one
// by LD_PRELOAD, where the environment says what is to fail:
// LACUNA_WRITE_FAULTS=AT:LENGTH:REPORT:FOLDER, LENGTH "once" or "on", REPORT a file that gets the
// number of calls and which one failed. What the C library calls within itself (fwrite's writes) is
// not seen: fopen, fflush and fclose are.
#include "faults/write_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr int kMostDescriptors = 4096;
constexpr size_t kMostPath = 1024;

struct State {
  std::atomic<bool> is_on = false;
  std::atomic<long> calls = 0;
  long at = 0;
  bool goes_on = false;
  std::array<char, kMostPath> folder{}, failed{}, report{};
  std::array<std::atomic<bool>, kMostDescriptors> watched{};
};

// Neither made nor destroyed: calls come before and after all else.
constinit State state;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// log.txt is for people: what becomes of it ends no run, and changes none.
bool is_below(const char* path) {
  return state.is_on &&
         std::strncmp(path, state.folder.data(), std::strlen(state.folder.data())) == 0 &&
         !std::string_view(path).ends_with("/log.txt");
}

bool is_watched(int descriptor) {
  return state.is_on && descriptor >= 0 && descriptor < kMostDescriptors &&
         state.watched[descriptor];
}

void watch(int descriptor) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) state.watched[descriptor] = true;
}

// Counts a call; whether it is to fail.
bool fails(const char* call, const char* path, int error) {
  const long number = ++state.calls;
  if (state.at == 0 || number < state.at || (number > state.at && !state.goes_on)) return false;
  if (state.failed[0] == '\0') {
    std::snprintf(state.failed.data(), kMostPath, "%s %s", call, path);
  }
  errno = error;
  return true;
}

bool fails_on(const char* call, int descriptor, int error) {
  std::array<char, kMostPath> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), path.data(), kMostPath - 1) < 0) path[0] = '\0';
  return fails(call, path.data(), error);
}

void begin(std::string_view folder, long at, bool goes_on) {
  state.folder[folder.copy(state.folder.data(), kMostPath - 1)] = '\0';
  state.failed[0] = '\0';
  state.at = at;
  state.goes_on = goes_on;
  for (auto& watched : state.watched) watched = false;
  state.calls = 0;
  state.is_on = true;
}

bool opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

int open_by(const char* name, const char* path, int flags, mode_t mode) {
  const bool is_ours = opens_for_writing(flags) && is_below(path);
  if (is_ours && fails("open", path, ENOSPC)) return -1;
  const int descriptor = next<int (*)(const char*, int, ...)>(name)(path, flags, mode);
  if (is_below(path)) watch(descriptor);  // what is flushed is opened for reading
  return descriptor;
}

FILE* fopen_by(const char* name, const char* path, const char* mode) {
  const bool is_ours = std::strpbrk(mode, "wa+") != nullptr && is_below(path);
  if (is_ours && fails("fopen", path, ENOSPC)) return nullptr;
  FILE* file = next<FILE* (*)(const char*, const char*)>(name)(path, mode);
  if (is_ours && file != nullptr) watch(::fileno(file));
  return file;
}

struct FromEnvironment {
  FromEnvironment() {
    const char* text = std::getenv("LACUNA_WRITE_FAULTS");
    if (text == nullptr) return;
    std::string_view spec = text;
    const auto part = [&] {
      const size_t end = std::min(spec.find(':'), spec.size());
      const std::string_view first = spec.substr(0, end);
      spec.remove_prefix(std::min(end + 1, spec.size()));
      return first;
    };
    const long at = std::strtol(part().data(), nullptr, 10);
    const bool goes_on = part() == "on";
    const std::string_view report = part();
    state.report[report.copy(state.report.data(), kMostPath - 1)] = '\0';
    begin(spec, at, goes_on);
  }
  ~FromEnvironment() {
    if (state.report[0] == '\0') return;
    state.is_on = false;
    FILE* file = std::fopen(state.report.data(), "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld %s", state.calls.load(), state.failed.data());
    std::fclose(file);
  }
} from_environment;

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_by("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_by("open64", path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) { return fopen_by("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fopen_by("fopen64", path, mode); }

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (is_watched(descriptor) && fails_on("write", descriptor, ENOSPC)) return -1;
  return next<ssize_t (*)(int, const void*, size_t)>("write")(descriptor, bytes, count);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  if (is_watched(descriptor) && fails_on("pwrite", descriptor, ENOSPC)) return -1;
  return next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(descriptor, bytes, count,
                                                                      offset);
}

int fsync(int descriptor) {
  if (is_watched(descriptor) && fails_on("fsync", descriptor, EIO)) return -1;
  return next<int (*)(int)>("fsync")(descriptor);
}

int ftruncate(int descriptor, off_t bytes) noexcept {
  if (is_watched(descriptor) && fails_on("ftruncate", descriptor, EIO)) return -1;
  return next<int (*)(int, off_t)>("ftruncate")(descriptor, bytes);
}

int truncate(const char* path, off_t bytes) noexcept {
  if (is_below(path) && fails("truncate", path, EIO)) return -1;
  return next<int (*)(const char*, off_t)>("truncate")(path, bytes);
}

int rename(const char* from, const char* to) noexcept {
  if (is_below(to) && fails("rename", to, EIO)) return -1;
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (is_below(path) && fails("mkdir", path, ENOSPC)) return -1;
  return next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

// A descriptor is gone even where closing it tells of an error, as on Linux.
int close(int descriptor) {
  const bool fault = is_watched(descriptor) && fails_on("close", descriptor, EIO);
  if (descriptor >= 0 && descriptor < kMostDescriptors) state.watched[descriptor] = false;
  const int result = next<int (*)(int)>("close")(descriptor);
  if (fault) errno = EIO;
  return fault ? -1 : result;
}

int fclose(FILE* file) {
  const int descriptor = ::fileno(file);
  const bool fault = is_watched(descriptor) && fails_on("fclose", descriptor, EIO);
  if (descriptor >= 0 && descriptor < kMostDescriptors) state.watched[descriptor] = false;
  const int result = next<int (*)(FILE*)>("fclose")(file);
  if (fault) errno = EIO;
  return fault ? EOF : result;
}

}  // extern "C"

namespace lacuna {

WriteFaults::WriteFaults(const std::string& folder, long at, FaultLength length) {
  begin(folder, at, length == FaultLength::FromThenOn);
}
WriteFaults::~WriteFaults() { state.is_on = false; }
long WriteFaults::calls() { return state.calls; }
std::string WriteFaults::failed() { return state.failed.data(); }

}  // namespace lacuna
