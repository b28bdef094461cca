// The frame of every benchmark program: its options, its first line, where its results go.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "common/measure.h"
#include "common/report.h"

namespace lacuna::bench {

/// How much is measured. Tiny is for testing the program: none of its numbers means anything.
enum class Size { Tiny, Quick, Full };

struct Settings {
  Size size = Size::Full;
  int threads = 1;
  int repetitions = 0;  ///< 0: what the size says
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  double elapsed_seconds() const;
  MeasureOptions measuring() const;
  std::string threads_text() const;  ///< "2 threads"
};

/// Reads the command line, sets the threads (oneDNN's too), prints what is measured with what, runs
/// `body`, and writes the files that were asked for. `add_options` adds the program's own options.
/// Returns the exit code.
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(const Settings&, Report&)>& body,
                const std::function<void(CLI::App&)>& add_options = {});

}  // namespace lacuna::bench
