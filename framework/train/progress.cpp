#include "lacuna/framework/train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

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

}  // namespace

ProgressStyle default_progress_style() {
  return isatty(STDERR_FILENO) != 0 ? ProgressStyle::Terminal : ProgressStyle::Lines;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::round(std::clamp(seconds, 0.0, 1e15)));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

std::string to_string(const ProgressReport& r) {
  char text[256];
  int length = std::snprintf(text, sizeof text, "step %lld/%lld  epoch %.2f  loss %.4g",
                             static_cast<long long>(r.step), static_cast<long long>(r.total_steps),
                             r.epoch, r.loss);
  std::string line(text, static_cast<size_t>(length));
  if (!std::isnan(r.accuracy)) {
    length = std::snprintf(text, sizeof text, "  accuracy %.2f %%", 100.0 * r.accuracy);
    line.append(text, static_cast<size_t>(length));
  }
  length = std::snprintf(text, sizeof text, "  density %.1f %%  %.0f examples/s", 100.0 * r.density,
                         r.examples_per_second);
  return line.append(text, static_cast<size_t>(length));
}

void Progress::begin(int64_t step) {
  first_step_ = step;
  start_ = Clock::now();
}

void Progress::draw(const ProgressReport& r) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> elapsed = now - start_;
  std::string line = to_string(r);
  if (r.step > first_step_) {
    const auto left = static_cast<double>(r.total_steps - r.step);
    const auto done = static_cast<double>(r.step - first_step_);
    line += "  " + format_duration(elapsed.count() * left / done) + " left";
  }
  line.resize(std::min(line.size(), terminal_columns()));
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  last_drawn_ = now;
  line_is_drawn_ = true;
}

void Progress::report(const ProgressReport& report) {
  if (style_ == ProgressStyle::Terminal) {
    draw(report);
    log_info_to_file(to_string(report));
  } else {
    log_info(to_string(report));
  }
}

void Progress::clear() {
  if (!line_is_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  line_is_drawn_ = false;
}

}  // namespace lacuna
