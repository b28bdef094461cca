// The parts of the page that are about one run, and how charts stand in it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// How many stand next to each other: two, three, or two with larger letters for points.
enum class ChartSize { Large, Small, Points };
/// Whether a chart of several curves has a key to them. Where all charts show the same runs, one
/// key above them does.
enum class ChartKey { Shown, Above };
/// Curves have at most `most` points.
std::string html_charts(const std::vector<Chart>& charts, ChartSize size, size_t most,
                        ChartKey key = ChartKey::Shown);

/// Charts and masks of a run's layers, as HTML and as data.
struct LayerDetails {
  std::string html;
  Config charts = Config::list();

  size_t bytes() const { return html.size() + charts.to_json().size(); }
};
/// `index` counts the runs of the page.
LayerDetails layer_details(const RunData& run, size_t index, size_t most_points);

/// What of a run is shown below the results.
struct RunDetails {
  LayerDetails layers = {};
  bool has_layers = true;  ///< false: charts and masks of layers would make the page too large
  bool has_config = true;  ///< likewise
};
/// The table of layers with `details`, the confusion matrix and the configuration, all of which is
/// folded where there are several runs.
std::string run_section(const RunData& run, size_t index, size_t runs, const RunDetails& details);

/// The run as docs/guides/report.md describes it.
Config run_json(const RunData& run, size_t index, bool has_layers);

}  // namespace lacuna
