// The parts of the page that are about one run, and how tables and charts stand in it.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/run_data.hpp"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

std::string html_table(const TextTable& table, const std::string& id);

enum class ChartSize { Large, Small };
/// Curves have at most `most` points.
std::string html_charts(const std::vector<Chart>& charts, ChartSize size, size_t most);

/// What could not be read; empty where all could.
std::string remarks_of(const RunData& run, bool is_one_of_many);

/// Layers with their charts and masks, and the configuration; `index` counts the runs of the page.
std::string run_section(const RunData& run, size_t index, size_t runs, size_t most_points);

/// The run as docs/guides/report.md describes it. Appends the charts of its layers to `charts`.
Config run_json(const RunData& run, size_t index, size_t most_points, Config& charts);

}  // namespace lacuna
