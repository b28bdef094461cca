#include "lacuna/framework/io/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

// A line that is wrapped could not be rewritten. The last column stays free: writing there makes
// some terminals go on to the next line.
size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return static_cast<size_t>(size.ws_col) - 1;
}

// Lines of a run that are shown at most. Evaluations are what people look for: all are shown, but
// of a run with thousands of them.
constexpr int64_t kReports = 20, kEvaluations = 1000;

// One decimal, or two digits of what would be 0.0.
std::string percentage(double fraction) {
  const double percent = 100.0 * fraction;
  return percent >= 0.1 || percent == 0.0 ? fmt::format("{:.1f}", percent)
                                          : fmt::format("{:.2g}", percent);
}

}  // namespace

ProgressStyle default_progress_style() {
  return isatty(STDERR_FILENO) != 0 ? ProgressStyle::Terminal : ProgressStyle::Lines;
}

std::string grouped(int64_t count) {
  const std::string digits = std::to_string(count);
  const size_t sign = count < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string rounded(double value) {
  constexpr double kMostDigits = 1e15;  // beyond these a number is no count of anything
  const double size = std::abs(value);
  return size >= 9999.5 && size < kMostDigits ? grouped(std::llround(value))
                                              : fmt::format("{:.4g}", value);
}

// More digits if an epoch has thousands of steps, and a run few epochs.
std::string epochs_in_words(double epochs) {
  return epochs < 9.9995 ? fmt::format("{:.3f}", epochs) : fmt::format("{:.2f}", epochs);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::round(std::clamp(seconds, 0.0, 1e15)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string to_string(const ProgressReport& r) {
  std::string line = fmt::format("step {}/{}  epoch {}  loss {:.4g}", r.step, r.total_steps,
                                 epochs_in_words(r.epoch), r.loss);
  if (!std::isnan(r.accuracy)) line += fmt::format("  accuracy {:.2f} %", 100.0 * r.accuracy);
  return line + fmt::format("  density {} %  {:.0f} examples/s", percentage(r.density),
                            r.examples_per_second);
}

std::string terminal_line(const ProgressReport& r, double seconds_left, size_t columns) {
  std::vector<std::string> parts;
  parts.push_back(fmt::format("step {}/{}", r.step, r.total_steps));
  parts.push_back(fmt::format("loss {:.4g}", r.loss));
  if (!std::isnan(r.accuracy)) parts.push_back(fmt::format("acc {:.1f}%", 100.0 * r.accuracy));
  parts.push_back("density " + percentage(r.density) + "%");
  parts.push_back(fmt::format("{:.0f} ex/s", r.examples_per_second));
  if (!std::isnan(seconds_left)) parts.push_back(format_duration(seconds_left) + " left");
  while (parts.size() > 1 && join(parts, "  ").size() > columns) parts.pop_back();
  return join(parts, "  ");
}

void Progress::begin(int64_t step, int64_t total_steps) {
  first_step_ = step;
  total_steps_ = total_steps;
  start_ = Clock::now();
}

void Progress::draw(const ProgressReport& r) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> elapsed = now - start_;
  double seconds_left = std::numeric_limits<double>::quiet_NaN();
  if (r.step > first_step_) {
    const auto left = static_cast<double>(r.total_steps - r.step);
    seconds_left = elapsed.count() * left / static_cast<double>(r.step - first_step_);
  }
  const std::string line = terminal_line(r, seconds_left, terminal_columns());
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  last_drawn_ = now;
  line_is_drawn_ = true;
}

void Progress::report(const ProgressReport& report) {
  if (style_ == ProgressStyle::Terminal) {
    draw(report);
    log_info_to_file(to_string(report));
  } else if (is_shown(report.step, kReports, last_report_)) {
    log_info(to_string(report));
  } else {
    log_detail(to_string(report));
  }
}

void Progress::report_evaluation(int64_t step, const std::string& text) {
  clear();
  is_shown(step, kEvaluations, last_evaluation_) ? log_info(text) : log_detail(text);
}

bool Progress::is_shown(int64_t step, int64_t parts, int64_t& last_part) const {
  const int64_t left = total_steps_ - first_step_, done = step - first_step_;
  const int64_t part = left <= parts ? done : (done - 1) / ((left + parts - 1) / parts);
  if (part == last_part && step != total_steps_) return false;
  last_part = part;
  return true;
}

void Progress::clear() {
  if (!line_is_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  line_is_drawn_ = false;
}

}  // namespace lacuna
