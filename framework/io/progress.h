// Progress: a run's reports on the console.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lacuna {

enum class ProgressStyle {
  Lines,     ///< a plain line at each report: for logs and pipes
  Terminal,  ///< one line that is rewritten; the reports go only to the log file
};

/// Terminal if the standard error output is one, else Lines.
ProgressStyle default_progress_style();

/// The figures of a run at a step.
struct ProgressReport {
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0.0;
  double loss = 0.0;
  double accuracy = 0.0;  ///< NaN: not shown
  double density = 1.0;   ///< of the sparse weights; of all weights if none is sparse
  double examples_per_second = 0.0;
};

/// Shows the progress of a run, on the standard error output and in the log.
class Progress {
 public:
  explicit Progress(ProgressStyle style) : style_(style) {}
  /// Clears the terminal's line.
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The starting point for the remaining time and for the selection of reports that the console
  /// shows.
  void begin(int64_t step, int64_t total_steps);
  /// Rewrites the terminal's line, at most ten times a second, with the report that `make_report`
  /// returns; in the other style nothing.
  template <class MakeReport>
  void tick(MakeReport&& make_report) {
    if (style_ != ProgressStyle::Terminal) return;
    if (Clock::now() - last_drawn_ < std::chrono::milliseconds(100)) return;
    draw(make_report());
  }
  /// A permanent report: a line in the log. The console shows one in each twentieth of the steps,
  /// and the others in verbose mode.
  void report(const ProgressReport& report);
  /// The same for an evaluation, in words.
  void report_evaluation(int64_t step, const std::string& text);
  /// Clears the terminal's line, so that other text can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const ProgressReport& report);
  /// Whether a step is the first one that asks in its part of the run (of this many parts), or the
  /// last of all.
  bool is_shown(int64_t step, int64_t parts, int64_t& last_part) const;

  ProgressStyle style_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_{};
  int64_t first_step_ = 0;
  int64_t total_steps_ = 0;
  int64_t last_report_ = -1, last_evaluation_ = -1;  // parts of the run that had one
  bool line_is_drawn_ = false;
};

/// "step 469/4690  epoch 1.00  loss 0.2134  accuracy 93.51 %  density 10.3 %  81234 examples/s".
std::string to_string(const ProgressReport& report);
/// "step 469/4690  loss 0.2134  acc 93.5%  density 10.3%  81234 ex/s  0:48 left": fits into a
/// terminal; parts at the end that do not fit into `columns` are left out. NaN seconds: unknown.
std::string terminal_line(const ProgressReport& report, double seconds_left, size_t columns);
/// Epochs done: "0.125", "9.000", "12.34".
std::string epochs_in_words(double epochs);
/// A count with separators: "1,570".
std::string grouped(int64_t count);
/// Four digits, and whole from 10,000 on: "0.01292", "7.5", "16,807".
std::string rounded(double value);
/// "1:02:03", "2:05".
std::string format_duration(double seconds);

}  // namespace lacuna
