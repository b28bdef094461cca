#include "lacuna/framework/job/job.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/distributed/data_parallel.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/float_instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"

namespace lacuna {
namespace {

std::shared_ptr<Communicator>& job() {
  static std::shared_ptr<Communicator> joined;
  return joined;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first line that two texts do not share.
std::string first_difference(const std::string& first, const std::string& other) {
  const std::vector<std::string> a = lines_of(first), b = lines_of(other);
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto line = [&](const std::vector<std::string>& lines) {
    return i < lines.size() ? "'" + lines[i] + "'" : std::string("nothing");
  };
  return fmt::format("line {}: {} and {}", i + 1, line(a), line(b));
}

}  // namespace

std::shared_ptr<Communicator> enter_job() {
  if (job() == nullptr) job() = join_job();
  if (job() != nullptr && job()->rank() > 0) log_to_console(LogLevel::Error);
  return job();
}

void leave_job() {
  if (job() != nullptr) job()->leave();
  job().reset();
}

std::string naming_process(const std::string& message) {
  const bool has_joined = job() != nullptr;
  if ((has_joined ? job()->size() : launched_processes()) == 1) return message;
  const int64_t rank = has_joined ? job()->rank() : launched_rank();
  return fmt::format("process {} on {}: {}", rank, host_name(), message);
}

void let_first_speak() {
  const bool has_joined = job() != nullptr;
  const int64_t rank = has_joined ? job()->rank() : launched_rank();
  if (rank == 0) return;
  // An abort ends the others at once, but not on a busy machine. Of a process that has not joined,
  // the launcher sees the end alone, and Open MPI's takes a second more to end the others.
  const int64_t wait = 3000, place = std::min<int64_t>(rank, 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(wait + 100 * place));
}

void end_job(int exit_code, const std::string& message, void (*say)(const std::string&)) {
  if (job() == nullptr || job()->size() == 1) return;
  let_first_speak();
  say(naming_process(message));
  stop_logging();
  job()->abort(exit_code);
}

namespace {

// A hash (FNV-1a) of the program's file; empty where it cannot be read.
std::string build_of_this_program() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  if (!stream) return "";
  uint64_t hash = 14695981039346656037u;
  std::vector<char> piece(size_t{1} << 20);
  while (stream.read(piece.data(), std::ssize(piece)) || stream.gcount() > 0) {
    for (std::streamsize i = 0; i < stream.gcount(); ++i) {
      hash = (hash ^ static_cast<uint8_t>(piece[static_cast<size_t>(i)])) * 1099511628211u;
    }
  }
  return fmt::format("{:x}", hash);
}

}  // namespace

void require_same_program(Communicator& communicator) {
  const std::string processor =
      fmt::format("{} KiB of first-level cache{}", first_level_bytes() / 1024,
                  spreads_by_loads() ? ", of Intel's servers" : "");
  const std::array<Agreed, 6> what = {
      {{"their version", kVersion},
       {"the revision of their arithmetic", fmt::format("{}", kArithmeticRevision)},
       {"the instruction set of their processors (set LACUNA_INSTRUCTION_SET to the lowest of "
        "them)",
        float_instruction_set()},
       {"the kind of processor that their kernels are chosen by (set LACUNA_PROCESSOR to one kind "
        "for all)",
        processor},
       {"what computes their dense products", dense_provider()},
       {"the number of blocks of dense products (set LACUNA_DENSE_BLOCKS to one number for all)",
        fmt::format("{}", most_dense_blocks())}}};
  require_agreement(communicator, what);
  const std::vector<std::string> builds = communicator.gather_texts(build_of_this_program());
  if (std::ranges::adjacent_find(builds, std::not_equal_to<>()) == builds.end()) return;
  log_warning(
      "the processes run different builds of the program: last digits may depend on the number of "
      "processes; use the same file on all nodes");
}

void require_same_command(Communicator& communicator, const std::string& what) {
  require_agreement(communicator, std::array{Agreed{"what they were started for", what}});
}

void require_same_config(Communicator& communicator, const Config& config) {
  const std::vector<std::string> texts = communicator.gather_texts(config.to_yaml());
  const std::vector<std::string> hosts = communicator.gather_texts(host_name());
  for (size_t p = 1; p < texts.size(); ++p) {
    if (texts[p] == texts[0]) continue;
    throw StateError(fmt::format(
        "the processes have read different configurations: process 0 on {} and process {} on {} "
        "differ in {}",
        hosts[0], p, hosts[p], first_difference(texts[0], texts[p])));
  }
}

Config config_of_first(Communicator& communicator, const Config& own) {
  const std::string text = communicator.from_first(own.to_yaml());
  return communicator.rank() == 0 ? own : parse_yaml(text, "the configuration of process 0");
}

}  // namespace lacuna
