#include "lacuna/framework/report/run_section.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "lacuna/framework/report/html.hpp"

namespace lacuna {
namespace {

// A picture's longer side on the page, and the least that its shorter one is stretched to.
constexpr double kPictureSide = 208.0, kLeastSide = 36.0;

std::string prefix_of(size_t run, size_t layer) { return fmt::format("layer-{}-{}", run, layer); }

bool is_number_column(const TextTable& table, size_t column) {
  return !table.rows.empty() && std::ranges::all_of(table.rows, [&](const auto& row) {
    const std::string& cell = row[column];
    return cell == "-" || (!cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) ||
                                             (cell[0] == '-' && cell.size() > 1)));
  });
}

std::string html_chart(const Chart& chart, ChartSize size, size_t most) {
  std::string html = fmt::format("<figure id=\"{}\" class=\"chart\"><figcaption>{}</figcaption>\n",
                                 chart.id, html_text(chart.title));
  if (chart.series.size() > 1) {
    html += "<div class=\"key\">";
    for (const ChartSeries& series : chart.series) {
      html += fmt::format("<span><i{} style=\"border-color:{}\"></i>{}</span>",
                          series.is_dashed ? " class=\"dashed\"" : "", colour_of(series.colour),
                          html_text(series.label));
    }
    html += "</div>\n";
  }
  constexpr size_t kOfLarge = 600, kOfSmall = 400;
  html += size == ChartSize::Large ? svg_of(chart, 560, 270, std::min(most, kOfLarge))
                                   : svg_of(chart, 370, 220, std::min(most, kOfSmall));
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
                    "<p class=\"note\">A pixel is the density of {} × {} positions, the "
                    "darkest one {:.3g} % in the last picture.</p>\n",
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

}  // namespace

std::string html_table(const TextTable& table, const std::string& id) {
  std::vector<const char*> classes;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    classes.push_back(is_number_column(table, c) ? " class=\"number\"" : "");
  }
  std::string html = fmt::format("<div class=\"wide\"><table id=\"{}\"><thead><tr>", id);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    html += fmt::format("<th{}>{}</th>", classes[c], html_text(table.columns[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  const bool has_best = id == "results" || id == "groups";
  for (const auto& row : table.rows) {
    html += has_best && table.rows.size() > 1 ? "<tr class=\"best\">" : "<tr>";
    for (size_t c = 0; c < row.size(); ++c) {
      html += fmt::format("<td{}>{}</td>", classes[c], html_text(row[c]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_charts(const std::vector<Chart>& charts, ChartSize size, size_t most) {
  std::string html =
      size == ChartSize::Large ? "<div class=\"charts\">\n" : "<div class=\"charts small\">\n";
  for (const Chart& chart : charts) html += html_chart(chart, size, most);
  return html + "</div>\n";
}

std::string remarks_of(const RunData& run, bool is_one_of_many) {
  std::string html;
  for (const std::string& remark : run.remarks) {
    html += "<p class=\"remark\">" +
            html_text((is_one_of_many ? run.name + ": " : std::string()) + remark) + "</p>\n";
  }
  return html;
}

std::string run_section(const RunData& run, size_t index, size_t runs, size_t most_points) {
  std::string html;
  if (!run.layers.empty()) {
    html += layers_table(run, fmt::format("layers-{}", index));
    for (size_t i = 0; i < run.layers.size(); ++i) {
      const LayerData& layer = run.layers[i];
      const std::string prefix = prefix_of(index, i);
      const std::string shape = layer.shape.rank() > 0 ? " " + layer.shape.to_string() : "";
      html += "<h3>" + html_text(layer.name + shape) + "</h3>\n" +
              html_charts(layer_charts(layer, prefix), ChartSize::Small, most_points) +
              html_pictures(layer, prefix);
    }
    const std::string head = runs == 1 ? "Sparse layers" : "Sparse layers of " + run.name;
    html = runs == 1
               ? "<h2>" + head + "</h2>\n" + html
               : "<details><summary>" + html_text(head) + "</summary>\n" + html + "</details>\n";
    if (runs > 1 && index == 0) html = "<h2>Each run</h2>\n" + html;
  } else if (runs > 1 && index == 0) {
    html = "<h2>Each run</h2>\n";
  }
  const std::string of_run = runs == 1 ? "" : " of " + html_text(run.name);
  if (runs == 1) html += "<h2>Configuration</h2>\n";
  html += "<details><summary>" +
          (runs == 1 ? std::string("config.yaml") : "Configuration" + of_run) +
          "</summary>\n<pre>" +
          html_text(run.config.is_null() ? "could not be read" : run.config.to_yaml()) +
          "</pre></details>\n";
  return html;
}

Config run_json(const RunData& run, size_t index, size_t most_points, Config& charts) {
  Config layers = Config::list();
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const LayerData& layer = run.layers[i];
    const std::string prefix = prefix_of(index, i);
    for (const Chart& chart : layer_charts(layer, prefix)) {
      charts.push_back(to_json(chart, most_points));
    }
    Config pictures = Config::list();
    for (size_t k = 0; k < layer.pictures.size(); ++k) {
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
  return Config::map({{"name", run.name},
                      {"folder", run.folder},
                      {"state", run.state},
                      {"remarks", Config::from_value(run.remarks)},
                      {"damaged_lines", run.damaged_lines},
                      {"config", run.config},
                      {"summary", run.summary},
                      {"layers", layers}});
}

}  // namespace lacuna
