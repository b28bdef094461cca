// The frame of every benchmark program: its options, its first line, where its results go.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/measure.h"
#include "common/report.h"

namespace lacuna::bench {

/// How much is measured. Tiny is for testing the program: none of its numbers means anything.
enum class Size { Tiny, Quick, Full };

struct Settings {
  Size size = Size::Full;
  int threads = 1;
  int repetitions = 0;  ///< 0: chosen by the size
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  double elapsed_seconds() const;
  MeasureOptions measuring() const;
  std::string threads_text() const;  ///< "2 threads"
};

/// An option of one program: its values, each a number in [lowest, highest] or a text, are added to
/// the one of the two that is not null.
struct Option {
  std::string name, help;
  std::vector<std::string>* texts = nullptr;
  std::vector<double>* numbers = nullptr;
  double lowest = 0.0, highest = 0.0;
};

/// Reads the command line, sets the threads (oneDNN's too), prints what is measured with what, runs
/// `body`, and writes the files that were asked for. `options` are the program's own. Returns the
/// exit code.
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(const Settings&, Report&)>& body,
                const std::vector<Option>& options = {});

}  // namespace lacuna::bench
