// What the program prints whatever its command is: notes, JSON, and what its build lacks.
#include <fmt/core.h>

#include <cstdio>

#include "lacuna/framework/io/log.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {

void print_note(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

void print_json(const Config& report) { std::fputs(json_text(report).c_str(), stdout); }

void warn_about_missing_kernels() {
  const std::string missing = uncompiled_instruction_set();
  if (missing.empty()) return;
  log_warning(
      fmt::format("this processor has {}, but this build has no kernels for it; build with "
                  "-DLACUNA_KERNELS=all",
                  missing));
}

}  // namespace lacuna
