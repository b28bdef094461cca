// Charts as SVG.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/styles.hpp"

namespace lacuna {
namespace {

constexpr int kLeft = 72, kRight = 16, kTop = 10, kBottom = 42;
// Of more curves than kDrawnWhole fewer points are drawn.
constexpr size_t kDrawnWhole = 10, kLeastDrawn = 40;

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

Range padded(Range range, ChartScale scale, double part) {
  if (scale == ChartScale::Logarithmic) {
    const double factor = std::pow(range.high / range.low, part) * 1.05;
    return {range.low / factor, range.high * factor};
  }
  range = widened(range);
  const double margin = part * (range.high - range.low);
  return {range.low - margin, range.high + margin};
}

Range x_range(const Chart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series) {
    for (const double step : series.curve.steps) range.include(step);
  }
  if (chart.kind == ChartKind::Scatter) return padded(range, chart.x_scale, 0.06);
  if (chart.kind == ChartKind::Histogram) range.high += chart.bar_width;
  return widened(range);
}

Range y_range(const Chart& chart) {
  Range range;
  if (chart.bands.empty()) {
    for (const ChartSeries& series : chart.series) {
      for (const double value : series.curve.values) range.include(value);
    }
  }
  for (const ChartBand& band : chart.bands) {
    for (const double value : band.band.mean.values) range.include(value);
  }
  if (chart.kind == ChartKind::Scatter) return padded(range, chart.scale, 0.08);
  if (chart.scale == ChartScale::Logarithmic) return {range.low / 1.1, range.high * 1.1};
  // Counts, times and rates are read against zero, and so is what comes near it.
  if (chart.kind == ChartKind::Histogram || chart.is_from_zero ||
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
  return fmt::format("{:.6g}", value);
}

std::string tick_text(double value, ChartUnit unit) {
  if (unit == ChartUnit::Percent) return fmt::format("{:.6g} %", 100.0 * value);
  return x_text(value);
}

std::string y_axis(const Chart& chart, const Range& ys, const Axis& y, int width, int height) {
  std::string svg;
  const bool is_log = chart.scale == ChartScale::Logarithmic;
  const double least = chart.unit == ChartUnit::Count ? 1.0 : 0.0;
  for (const double tick : is_log ? log_ticks(ys) : round_ticks(ys.low, ys.high, 6, least)) {
    const double py = y.at(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
        kLeft, width - kRight, py, py, kLeft - 8, py + 4, tick_text(tick, chart.unit));
  }
  if (chart.y_label.empty()) return svg;
  const int middle = (kTop + height - kBottom) / 2;
  return svg + fmt::format(
                   "<text class=\"tick\" text-anchor=\"middle\" x=\"12\" y=\"{}\" "
                   "transform=\"rotate(-90 12 {})\">{}</text>\n",
                   middle, middle, html_text(chart.y_label));
}

std::string x_axis(const Chart& chart, const Range& xs, const Axis& x, int width, int height) {
  std::string svg;
  const bool is_log = chart.x_scale == ChartScale::Logarithmic;
  const double least = chart.kind == ChartKind::Scatter ? 0.0 : 1.0;
  for (const double tick :
       is_log ? log_ticks(xs) : round_ticks(xs.low, xs.high, width < 400 ? 5 : 8, least)) {
    const double px = x.at(tick);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>"
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        px, px, height - kBottom, height - kBottom + 4, px, height - kBottom + 17,
        tick_text(tick, chart.x_unit));
  }
  return svg + fmt::format(
                   "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>"
                   "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
                   kLeft, width - kRight, height - kBottom, height - kBottom, width - kRight,
                   height - 6, html_text(chart.x_label));
}

std::string line_of(const Curve& whole, const CurveStyle& style, const Axis& x, const Axis& y,
                    size_t most) {
  const Curve curve = thinned(whole, most);
  std::string points;
  for (size_t i = 0; i < curve.steps.size(); ++i) {
    points += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x.at(curve.steps[i]),
                          y.at(curve.values[i]));
  }
  std::string svg = fmt::format("<polyline {} points=\"{}\"/>\n", style_attributes(style), points);
  if (curve.steps.size() > 12) return svg;
  for (size_t i = 0; i < curve.steps.size(); ++i) {  // few points are seen as points
    svg += fmt::format("<circle class=\"dot c{}\" r=\"2.6\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>\n",
                       style.colour, x.at(curve.steps[i]), y.at(curve.values[i]));
  }
  return svg;
}

// Between the mean less the deviation and the mean with it, as far as the chart reaches.
std::string area_of(const ChartBand& band, const Range& ys, const Axis& x, const Axis& y,
                    size_t most) {
  const Curve mean = thinned(band.band.mean, most);
  const Curve spread = thinned({band.band.mean.steps, band.band.spread}, most);
  std::string upper, lower;
  for (size_t i = 0; i < mean.steps.size(); ++i) {
    const double high = std::clamp(mean.values[i] + spread.values[i], ys.low, ys.high);
    const double low = std::clamp(mean.values[i] - spread.values[i], ys.low, ys.high);
    upper += fmt::format("{:.1f},{:.1f} ", x.at(mean.steps[i]), y.at(high));
    lower.insert(0, fmt::format("{:.1f},{:.1f} ", x.at(mean.steps[i]), y.at(low)));
  }
  return fmt::format("<polygon class=\"band c{}\" points=\"{}{}\"/>\n", band.style.colour, upper,
                     lower);
}

std::string bars_of(const Chart& chart, const ChartSeries& series, const Axis& x, const Axis& y) {
  std::string svg;
  for (size_t i = 0; i < series.curve.steps.size(); ++i) {
    const double left = x.at(series.curve.steps[i]);
    const double right = x.at(series.curve.steps[i] + chart.bar_width);
    const double top = y.at(series.curve.values[i]);
    svg += fmt::format(
        "<rect class=\"dot c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/>\n",
        series.style.colour, left, top, std::max(1.0, right - left - 1.0), y.at(0.0) - top);
  }
  return svg;
}

// Where names of points stand already.
struct Box {
  double left, right, y;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && std::abs(y - other.y) < 12.0;
  }
};

// A point with its name, which a pointer that rests on it shows; of few points it stands next to
// it, where there is room.
std::string point_of(const Chart& chart, const ChartSeries& series, const Axis& x, const Axis& y,
                     int width, std::vector<Box>& taken) {
  constexpr size_t kMostLabels = 12;
  constexpr double kLetter = 6.4;
  if (series.curve.empty()) return "";
  const double px = x.at(series.curve.steps[0]), py = y.at(series.curve.values[0]);
  std::string svg = fmt::format(
      "<circle class=\"dot c{} point\" data-run=\"{}\" r=\"4.5\" cx=\"{:.1f}\" cy=\"{:.1f}\">"
      "<title>{}: {} {}, {} {}</title></circle>\n",
      series.style.colour, series.run, px, py, html_text(series.label), chart.y_label,
      tick_text(series.curve.values[0], chart.unit), html_text(chart.x_label),
      tick_text(series.curve.steps[0], chart.x_unit));
  if (chart.series.size() > kMostLabels) return svg;
  const double length = kLetter * static_cast<double>(series.label.size());
  const bool is_left = px + 8.0 + length > width;
  const Box box{is_left ? px - 8.0 - length : px + 8.0, is_left ? px - 8.0 : px + 8.0 + length, py};
  if (std::ranges::any_of(taken, [&](const Box& other) { return box.overlaps(other); })) return svg;
  taken.push_back(box);
  return svg + fmt::format(
                   "<text class=\"tick\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                   is_left ? "end" : "start", px + (is_left ? -8 : 8), py + 4,
                   html_text(series.label));
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
  const Axis x(xs, kLeft, width - kRight, chart.x_scale);
  const Axis y(ys, height - kBottom, kTop, chart.scale);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                width, height, html_text(chart.title));
  svg += y_axis(chart, ys, y, width, height) + x_axis(chart, xs, x, width, height);
  const size_t drawn = chart.bands.empty() ? chart.series.size() : 2 * chart.bands.size();
  const size_t most =
      std::max(kLeastDrawn, most_drawn * kDrawnWhole / std::max(drawn, kDrawnWhole));
  for (const ChartBand& band : chart.bands) {
    if (band.runs.size() > 1) svg += area_of(band, ys, x, y, most);
  }
  for (const ChartBand& band : chart.bands) {
    svg += line_of(band.band.mean, band.style, x, y, most);
  }
  if (!chart.bands.empty()) return svg + "</svg>\n";
  std::vector<Box> taken;
  for (const ChartSeries& series : chart.series) {
    if (chart.kind == ChartKind::Histogram) svg += bars_of(chart, series, x, y);
    if (chart.kind == ChartKind::Scatter) svg += point_of(chart, series, x, y, width, taken);
    if (chart.kind == ChartKind::Curves) svg += line_of(series.curve, series.style, x, y, most);
  }
  return svg + "</svg>\n";
}

}  // namespace lacuna
