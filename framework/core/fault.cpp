#include "lacuna/framework/core/fault.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

namespace lacuna {
namespace {

struct Fault {
  std::string name;
  long count = 0;
  int signal = SIGKILL;
};

Fault read_fault() {
  Fault fault;
  const char* text = std::getenv("LACUNA_FAULT");
  if (text == nullptr) return fault;
  std::string spec = text;
  const size_t first = spec.find(':');
  fault.name = spec.substr(0, first);
  fault.count = 1;
  if (first == std::string::npos) return fault;
  fault.count = std::strtol(spec.c_str() + first + 1, nullptr, 10);
  if (spec.ends_with(":stop")) fault.signal = SIGTERM;
  if (spec.ends_with(":interrupt")) fault.signal = SIGINT;
  return fault;
}

}  // namespace

void fault_point(std::string_view name) {
  static const Fault fault = read_fault();
  if (fault.count == 0 || name != fault.name) return;
  static std::atomic<long> passed{0};
  if (++passed == fault.count) std::raise(fault.signal);
}

}  // namespace lacuna
