// The text of sweep's --over, several behind each other.
#include "lacuna/framework/program/settings/sweep_plan.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> over;
  for (const std::string_view part : fuzz::parts_of(fuzz::text_of(data, size), 3)) {
    if (!part.empty()) over.emplace_back(part);
  }
  fuzz::answer([&] {
    for (const SweepRun& run : plan_sweep(over, 1, 2)) {
      fuzz::require(!run.name.empty() && run.name.find('/') == std::string::npos &&
                        run.name.find('\0') == std::string::npos,
                    "a run's name is no name of a folder");
    }
  });
  return 0;
}
