// Charts as SVG.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/html.hpp"

namespace lacuna {
namespace {

constexpr int kLeft = 62, kRight = 16, kTop = 10, kBottom = 42;
// Of more curves than kDrawnWhole fewer points are drawn.
constexpr size_t kDrawnWhole = 10, kLeastDrawn = 60;

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) { low = std::min(low, value), high = std::max(high, value); }
};

// From values to pixels.
class Axis {
 public:
  Axis(Range range, double begin, double end, ChartScale scale)
      : scale_(scale), begin_(begin), end_(end) {
    low_ = forward(range.low), high_ = forward(range.high);
  }
  double at(double value) const {
    return begin_ + (forward(value) - low_) / (high_ - low_) * (end_ - begin_);
  }

 private:
  double forward(double value) const {
    return scale_ == ChartScale::Logarithmic ? std::log10(value) : value;
  }
  ChartScale scale_;
  double begin_, end_, low_ = 0.0, high_ = 1.0;
};

// Values that are the same but for rounding are shown as such.
Range widened(Range range) {
  if (range.high - range.low > 1e-9 * std::max(std::abs(range.low), std::abs(range.high))) {
    return range;
  }
  const double margin = range.low == 0.0 ? 1.0 : std::abs(range.low) * 0.5;
  return {range.low - margin, range.high + margin};
}

Range x_range(const Chart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series) {
    for (const double step : series.curve.steps) range.include(step);
  }
  if (chart.is_histogram) range.high += chart.bar_width;
  return widened(range);
}

Range y_range(const Chart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series) {
    for (const double value : series.curve.values) range.include(value);
  }
  if (chart.scale == ChartScale::Logarithmic) return {range.low / 1.1, range.high * 1.1};
  // Counts, times and rates are read against zero, and so is what comes near it.
  if (chart.is_histogram || chart.is_from_zero ||
      (range.low >= 0.0 && range.low < 0.5 * range.high))
    range.low = 0.0;
  if (range.low == 0.0 && range.high == 0.0) return {0.0, 1.0};
  const bool is_constant = range.high - range.low <= 1e-9 * std::abs(range.high);
  if (is_constant && range.high > 0.0) {
    const bool is_share = chart.unit == ChartUnit::Percent;
    return {0.0, is_share ? std::min(1.05, 1.6 * range.high) : 1.6 * range.high};
  }
  range = widened(range);
  const double margin = 0.05 * (range.high - range.low);
  const bool may_pass_one = chart.unit != ChartUnit::Percent || range.high > 1.0;
  range.high = may_pass_one ? range.high + margin : std::min(1.0, range.high + margin);
  if (range.low != 0.0) range.low -= margin;
  return widened(range);
}

// 1, 2 and 5 times powers of ten, or powers alone where the range is wide.
std::vector<double> log_ticks(const Range& range) {
  std::vector<double> ticks;
  const bool is_wide = std::log10(range.high / range.low) > 2.5;
  const int first = static_cast<int>(std::floor(std::log10(range.low)));
  const int last = static_cast<int>(std::ceil(std::log10(range.high)));
  const int stride = std::max(1, (last - first) / 6);
  for (int power = first; power <= last; power += is_wide ? stride : 1) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10.0, power);
      if ((digit == 1.0 || !is_wide) && tick >= range.low && tick <= range.high) {
        ticks.push_back(tick);
      }
    }
  }
  return ticks;
}

std::string x_text(double value) {
  if (std::abs(value) >= 1e6) return fmt::format("{:.12g}M", value / 1e6);
  if (std::abs(value) >= 10000) return fmt::format("{:.12g}k", value / 1e3);
  return fmt::format("{:.12g}", value);
}

std::string y_text(double value, ChartUnit unit) {
  if (unit == ChartUnit::Percent) return fmt::format("{:.6g} %", 100.0 * value);
  return std::abs(value) >= 10000 ? x_text(value) : fmt::format("{:.6g}", value);
}

std::string axes(const Chart& chart, const Range& xs, const Range& ys, const Axis& x, const Axis& y,
                 int width, int height) {
  std::string svg;
  const bool is_log = chart.scale == ChartScale::Logarithmic;
  const double least = chart.unit == ChartUnit::Count ? 1.0 : 0.0;
  for (const double tick : is_log ? log_ticks(ys) : round_ticks(ys.low, ys.high, 6, least)) {
    const double py = y.at(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
        kLeft, width - kRight, py, py, kLeft - 8, py + 4, y_text(tick, chart.unit));
  }
  for (const double tick : round_ticks(xs.low, xs.high, width < 400 ? 5 : 8, 1.0)) {
    const double px = x.at(tick);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>"
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        px, px, height - kBottom, height - kBottom + 4, px, height - kBottom + 17, x_text(tick));
  }
  svg += fmt::format(
      "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>"
      "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
      kLeft, width - kRight, height - kBottom, height - kBottom, width - kRight, height - 6,
      html_text(chart.x_label));
  return svg;
}

std::string line_of(const ChartSeries& series, const Axis& x, const Axis& y, size_t most) {
  const Curve curve = thinned(series.curve, most);
  std::string points;
  for (size_t i = 0; i < curve.steps.size(); ++i) {
    points += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x.at(curve.steps[i]),
                          y.at(curve.values[i]));
  }
  std::string svg = fmt::format("<polyline class=\"curve\" stroke=\"{}\"{} points=\"{}\"/>\n",
                                colour_of(series.colour),
                                series.is_dashed ? " stroke-dasharray=\"5 4\"" : "", points);
  if (curve.steps.size() > 12) return svg;
  for (size_t i = 0; i < curve.steps.size(); ++i) {  // few points are seen as points
    svg += fmt::format("<circle r=\"2.6\" fill=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>\n",
                       colour_of(series.colour), x.at(curve.steps[i]), y.at(curve.values[i]));
  }
  return svg;
}

std::string bars_of(const Chart& chart, const ChartSeries& series, const Axis& x, const Axis& y) {
  std::string svg;
  for (size_t i = 0; i < series.curve.steps.size(); ++i) {
    const double left = x.at(series.curve.steps[i]);
    const double right = x.at(series.curve.steps[i] + chart.bar_width);
    const double top = y.at(series.curve.values[i]);
    svg += fmt::format(
        "<rect fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        colour_of(series.colour), left, top, std::max(1.0, right - left - 1.0), y.at(0.0) - top);
  }
  return svg;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int most, double least) {
  const double rough = std::max((high - low) / most, least);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double stride = 10.0 * power;
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= rough) stride = digit * power;
  }
  std::vector<double> ticks;
  for (double i = std::ceil(low / stride - 1e-9); i * stride <= high + 1e-9 * stride; ++i) {
    ticks.push_back(i * stride + 0.0);  // no negative zero
    if (static_cast<int>(ticks.size()) > most + 1) break;
  }
  return ticks;
}

std::string svg_of(const Chart& chart, int width, int height, size_t most_drawn) {
  const Range xs = x_range(chart), ys = y_range(chart);
  const Axis x(xs, kLeft, width - kRight, ChartScale::Linear);
  const Axis y(ys, height - kBottom, kTop, chart.scale);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                width, height, html_text(chart.title));
  svg += axes(chart, xs, ys, x, y, width, height);
  const size_t most =
      std::max(kLeastDrawn, most_drawn * kDrawnWhole / std::max(chart.series.size(), kDrawnWhole));
  for (const ChartSeries& series : chart.series) {
    svg += chart.is_histogram ? bars_of(chart, series, x, y) : line_of(series, x, y, most);
  }
  return svg + "</svg>\n";
}

}  // namespace lacuna
