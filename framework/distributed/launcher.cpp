#include <dlfcn.h>
#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/distributed/communicator.h"

namespace lacuna {
namespace {

constexpr const char* kPlugin = "liblacuna_mpi.so";
// What it exports.
[[maybe_unused]] constexpr const char *kJoin = "lacuna_join_mpi",
                                      *kVersionOfMpi = "lacuna_mpi_version";

#if LACUNA_HAVE_MPI
// Next to the program, where installed programs have their libraries, where the build put it, and
// wherever the system looks.
std::vector<std::string> places() {
  std::vector<std::string> paths;
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) {
    paths.push_back(program.parent_path() / kPlugin);
    paths.push_back(program.parent_path().parent_path() / LACUNA_PLUGIN_FOLDER / kPlugin);
  }
  paths.emplace_back(std::string(LACUNA_PLUGIN_BUILD_FOLDER) + "/" + kPlugin);
  paths.emplace_back(kPlugin);
  return paths;
}
#endif

// Null, and `why` not.
void* plugin(std::string* why) {
#if LACUNA_HAVE_MPI
  static void* loaded = nullptr;
  if (loaded != nullptr) return loaded;
  for (const std::string& path : places()) {
    std::error_code none;
    if (path.find('/') != std::string::npos && !std::filesystem::exists(path, none)) continue;
    // Global: Open MPI loads plugins of its own, which look for its symbols.
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      const std::string error = ::dlerror();
      if (why->empty()) *why = error;
    } else if (::dlsym(library, kJoin) == nullptr || ::dlsym(library, kVersionOfMpi) == nullptr) {
      *why = fmt::format("{} lacks '{}' or '{}', so it belongs to another version of lacuna", path,
                         kJoin, kVersionOfMpi);
    } else {
      return loaded = library;
    }
  }
  if (why->starts_with(std::string(kPlugin) + ": cannot open shared object file")) {
    *why = fmt::format("lacuna's MPI plugin, {}, is not installed (Debian package: lacuna-mpi)",
                       kPlugin);
  }
  return nullptr;
#else
  *why = "lacuna was built without MPI (install libopenmpi-dev, and configure again)";
  return nullptr;
#endif
}

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

bool is_launched() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  // Open MPI's mpirun; MPICH's and Slurm's PMI and PMI-2, Slurm's PMIx.
  return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMI_SIZE") || is_set("PMI_RANK") ||
         (is_set("PMIX_RANK") && is_set("PMIX_NAMESPACE"));
}

namespace {

// The first of these variables that holds a number.
std::optional<int64_t> number_in(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
    if (error == std::errc() && *end == '\0') return number;
  }
  return std::nullopt;
}

}  // namespace

int64_t launched_processes() {
  return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}).value_or(is_launched() ? 0 : 1);
}

int64_t launched_rank() {
  if (!is_launched()) return 0;
  return number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}).value_or(0);
}

std::string mpi_description() {
  std::string why;
  void* library = plugin(&why);
  if (library == nullptr) return "none: " + why;
  return find<const char* (*)()>(library, kVersionOfMpi)();
}

std::shared_ptr<Communicator> join_job() {
  if (!is_launched()) return nullptr;
  std::string why;
  void* library = plugin(&why);
  if (library == nullptr) {
    throw StateError(
        fmt::format("an MPI launcher started this process, but it cannot join: {}", why));
  }
  std::shared_ptr<Communicator> job(find<Communicator* (*)()>(library, kJoin)());
  if (launched_processes() <= 1 || job->size() > 1) return job;
  // Each would take itself for the whole job, and all train the same run.
  job->leave();
  throw StateError(
      fmt::format("a launcher started {} processes, but {} sees only this one: the launcher "
                  "belongs to another MPI. Use this one's (mpirun, or srun --mpi=pmix), or build "
                  "lacuna with the other. To train in one process, unset PMI_SIZE and PMI_RANK",
                  launched_processes(), mpi_description()));
}

}  // namespace lacuna
