// Progress: what a person sees of a run on the console.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lacuna {

enum class ProgressStyle {
  Quiet,     ///< nothing
  Lines,     ///< a plain line at each report: for logs and pipes
  Terminal,  ///< one line that is rewritten
};

/// Terminal when the standard error output is one, else Lines.
ProgressStyle default_progress_style();

/// What is known of a run at a step.
struct ProgressReport {
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0.0;
  double loss = 0.0;
  double accuracy = 0.0;  ///< NaN: not shown
  double density = 1.0;
  double examples_per_second = 0.0;
};

/// Writes reports to the standard error output.
class Progress {
 public:
  explicit Progress(ProgressStyle style) : style_(style) {}

  /// Rewrites the terminal's line, at most ten times a second; nothing in other styles.
  void tick(const ProgressReport& report);
  /// A report to keep: a line of its own in the log style.
  void report(const ProgressReport& report);
  /// Clears the terminal's line, so that other text can be written.
  void clear();

 private:
  void draw(const ProgressReport& report);

  ProgressStyle style_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_drawn_{};
  int64_t first_step_ = -1;
  bool line_is_drawn_ = false;
};

/// "step 469/4690  epoch 1.00  loss 0.2134  accuracy 93.51 %  density 10.3 %  81234 examples/s".
std::string to_string(const ProgressReport& report);
/// "1:02:03", "2:05".
std::string format_duration(double seconds);

}  // namespace lacuna
