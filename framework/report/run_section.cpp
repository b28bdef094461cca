#include "lacuna/framework/report/run_section.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lacuna/framework/report/confusion.hpp"
#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/html_table.hpp"

namespace lacuna {
namespace {

// Steps and values, with the digits that a screen shows.
Config numbers_json(const Curve& curve) {
  const auto list_of = [](const std::vector<double>& values) {
    Config list = Config::list();
    for (const double value : values) list.push_back(Config::plain(fmt::format("{:.6g}", value)));
    return list;
  };
  return Config::map({{"x", list_of(curve.steps)}, {"y", list_of(curve.values)}});
}

// A picture's longer side on the page, and the least that its shorter one is stretched to.
constexpr double kPictureSide = 208.0, kLeastSide = 36.0;

std::string prefix_of(size_t run, size_t layer) { return fmt::format("layer-{}-{}", run, layer); }

std::string html_chart(const Chart& chart, ChartSize size, size_t most, ChartKey key) {
  std::string html = fmt::format("<figure id=\"{}\" class=\"chart\"><figcaption>{}</figcaption>\n",
                                 chart.id, html_text(chart.title));
  if (chart.series.size() > 1 && key == ChartKey::Shown) {
    html += "<div class=\"key\">";
    for (const ChartSeries& series : chart.series) {
      html += "<span>" + swatch(series.style) + html_text(series.label) + "</span>";
    }
    html += "</div>\n";
  }
  constexpr size_t kOfLarge = 600, kOfSmall = 400;
  if (size == ChartSize::Large) {
    html += svg_of(chart, 560, 270, std::min(most, kOfLarge));
  } else if (size == ChartSize::Small) {
    html += svg_of(chart, 370, 220, std::min(most, kOfSmall));
  } else {
    html += svg_of(chart, 440, 250);
  }
  return html + "<div class=\"plot\"></div></figure>\n";
}

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100.0 * fraction); }

std::string last_of(const Curve& curve, const std::string& unit = "") {
  if (curve.empty()) return "-";
  const double value = curve.values.back();
  return unit == "%" ? percent(value) : fmt::format("{:.12g}", value);
}

std::string html_pictures(const LayerData& layer, const std::string& prefix) {
  if (layer.pictures.empty()) return "";
  std::string html = "<div class=\"masks\">\n";
  for (size_t i = 0; i < layer.pictures.size(); ++i) {
    const MaskPicture& picture = layer.pictures[i];
    const auto rows = static_cast<double>(picture.height * picture.tile_rows);
    const auto columns = static_cast<double>(picture.width * picture.tile_columns);
    const double scale = kPictureSide / std::max(rows, columns);
    html += fmt::format(
        "<figure class=\"mask\"><img id=\"{}-mask-{}\" alt=\"{} at step {}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" src=\"{}\"><figcaption>step {}</figcaption></figure>\n",
        prefix, i, html_text(layer.name), layer.picture_steps[i],
        std::max(kLeastSide, columns * scale), std::max(kLeastSide, rows * scale),
        data_url_of_png(picture.png), layer.picture_steps[i]);
  }
  html += "</div>\n";
  const MaskPicture& last = layer.pictures.back();
  if (last.tile_rows * last.tile_columns == 1) return html;
  return html + fmt::format(
                    "<p class=\"note\">Each pixel shows the density of {} × {} positions; the "
                    "darkest is {:.3g} % in the last picture.</p>\n",
                    last.tile_rows, last.tile_columns, 100.0 * last.darkest);
}

std::string layers_table(const RunData& run, const std::string& id) {
  TextTable table{.columns = {"layer", "shape", "target density", "density", "nonzeros",
                              "last churn", "ever active", "dead rows", "dead columns"},
                  .rows = {}};
  for (const LayerData& layer : run.layers) {
    const bool has_shape = layer.shape.rank() > 0;
    std::string nnz = last_of(layer.nnz);
    if (has_shape && !layer.actual.empty()) {
      nnz = fmt::format("{:.0f}", std::round(layer.actual.values.back() *
                                             static_cast<double>(layer.shape.numel())));
    }
    table.rows.push_back({layer.name, has_shape ? layer.shape.to_string() : "-",
                          last_of(layer.target, "%"), last_of(layer.actual, "%"), nnz,
                          last_of(layer.churn, "%"), last_of(layer.ever_active, "%"),
                          last_of(layer.dead_rows), last_of(layer.dead_columns)});
  }
  return html_table(table, id);
}

// What the run has changed while it went on.
std::string changes_of(const RunData& run) {
  if (run.changes.empty()) return "";
  std::string html = "<ul class=\"changes\">\n";
  for (const ConfigChange& change : run.changes) {
    html += "<li>" +
            html_text(fmt::format("changed at step {}: {} from {} to {}", change.step, change.key,
                                  value_in_words(change.before), value_in_words(change.after))) +
            "</li>\n";
  }
  return html + "</ul>\n";
}

std::string config_of(const RunData& run, bool has_config) {
  if (!has_config) {
    return "<p class=\"note\">The configuration is left out of this page of many runs: " +
           html_text(run.folder) + "/config.yaml</p>\n";
  }
  return "<details><summary>config.yaml</summary>\n<pre>" +
         html_text(run.config.is_null() ? "could not be read" : run.config.to_yaml()) +
         "</pre></details>\n";
}

std::string layers_of(const RunData& run, size_t index, const RunDetails& details) {
  if (run.layers.empty()) return "";
  std::string html = layers_table(run, fmt::format("layers-{}", index)) + details.layers.html;
  if (details.has_layers) return html;
  return html +
         "<p class=\"note\">Curves and masks of these layers are left out of this page of many "
         "runs; a page of this run alone has them.</p>\n";
}

}  // namespace

std::string html_charts(const std::vector<Chart>& charts, ChartSize size, size_t most,
                        ChartKey key) {
  std::string html =
      size == ChartSize::Small ? "<div class=\"charts small\">\n" : "<div class=\"charts\">\n";
  for (const Chart& chart : charts) html += html_chart(chart, size, most, key);
  return html + "</div>\n";
}

LayerDetails layer_details(const RunData& run, size_t index, size_t most_points) {
  LayerDetails details;
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const LayerData& layer = run.layers[i];
    const std::string prefix = prefix_of(index, i);
    const std::string shape = layer.shape.rank() > 0 ? " " + layer.shape.to_string() : "";
    const std::vector<Chart> charts = layer_charts(layer, prefix);
    details.html += "<h3>" + html_text(layer.name + shape) + "</h3>\n" +
                    html_charts(charts, ChartSize::Small, most_points) +
                    html_pictures(layer, prefix);
    for (const Chart& chart : charts) details.charts.push_back(to_json(chart, most_points));
  }
  return details;
}

std::string run_section(const RunData& run, size_t index, size_t runs, const RunDetails& details) {
  const std::string layers = layers_of(run, index, details);
  const std::string confusion = html_confusion(run.confusion, fmt::format("confusion-{}", index));
  const std::string config = changes_of(run) + config_of(run, details.has_config);
  if (runs > 1) {
    return "<details><summary>" + html_text(run.label) + "</summary>\n" + confusion + layers +
           config + "</details>\n";
  }
  return (confusion.empty() ? "" : "<h2>Confusion matrix</h2>\n" + confusion) +
         (layers.empty() ? "" : "<h2>Sparse layers</h2>\n" + layers) + "<h2>Configuration</h2>\n" +
         config;
}

Config run_json(const RunData& run, size_t index, bool has_layers) {
  Config layers = Config::list();
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const LayerData& layer = run.layers[i];
    const std::string prefix = prefix_of(index, i);
    Config pictures = Config::list();
    for (size_t k = 0; has_layers && k < layer.pictures.size(); ++k) {
      const MaskPicture& picture = layer.pictures[k];
      pictures.push_back(Config::map({{"step", layer.picture_steps[k]},
                                      {"image", fmt::format("{}-mask-{}", prefix, k)},
                                      {"width", picture.width},
                                      {"height", picture.height},
                                      {"tile_rows", picture.tile_rows},
                                      {"tile_columns", picture.tile_columns},
                                      {"darkest", picture.darkest}}));
    }
    Config shape = Config::list();
    for (const int64_t size : layer.shape.sizes()) shape.push_back(size);
    layers.push_back(Config::map(
        {{"name", layer.name}, {"shape", shape}, {"charts", prefix}, {"pictures", pictures}}));
  }
  Config changes = Config::list();
  for (const ConfigChange& change : run.changes) {
    changes.push_back(Config::map({{"step", change.step},
                                   {"key", change.key},
                                   {"old", change.before},
                                   {"new", change.after}}));
  }
  constexpr size_t kMostTimes = 100;
  const Curve seconds = thinned(run.seconds, kMostTimes);
  return Config::map({{"name", run.name},
                      {"label", run.label},
                      {"folder", run.folder},
                      {"state", run.state},
                      {"remarks", Config::from_value(run.remarks)},
                      {"damaged_lines", run.damaged_lines},
                      {"config", run.config},
                      {"changes", changes},
                      {"summary", run.summary},
                      {"epochs_of_a_step", run.epochs_of_a_step},
                      {"seconds", numbers_json(seconds)},
                      {"layers", layers}});
}

}  // namespace lacuna
