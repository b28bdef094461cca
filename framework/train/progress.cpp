#include "lacuna/framework/train/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "lacuna/framework/io/log.h"

namespace lacuna {

ProgressStyle default_progress_style() {
  return isatty(STDERR_FILENO) != 0 ? ProgressStyle::Terminal : ProgressStyle::Lines;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, std::round(seconds)));
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
  int length = std::snprintf(text, sizeof text, "step %lld/%lld  epoch %.2f  loss %.4f",
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

void Progress::draw(const ProgressReport& r) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string line = to_string(r);
  if (r.step > first_step_) {
    const auto left = static_cast<double>(r.total_steps - r.step);
    line += "  " + format_duration(elapsed * left / static_cast<double>(r.step - first_step_)) +
            " left";
  }
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  last_drawn_ = now;
  line_is_drawn_ = true;
}

void Progress::tick(const ProgressReport& report) {
  if (first_step_ < 0) {
    first_step_ = report.step;
    start_ = std::chrono::steady_clock::now();
  }
  if (style_ != ProgressStyle::Terminal) return;
  if (std::chrono::steady_clock::now() - last_drawn_ < std::chrono::milliseconds(100)) return;
  draw(report);
}

void Progress::report(const ProgressReport& report) {
  if (style_ == ProgressStyle::Terminal) {
    draw(report);
  } else if (style_ == ProgressStyle::Lines) {
    log_info(to_string(report));
  }
}

void Progress::clear() {
  if (!line_is_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  line_is_drawn_ = false;
}

}  // namespace lacuna
