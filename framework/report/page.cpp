#include "lacuna/framework/report/page.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/differences.hpp"
#include "lacuna/framework/report/embedded_files.hpp"
#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/run_section.hpp"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

// The page shows nothing that it does not hold: whatever it would fetch is refused by the browser.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'";

std::string title_of(const std::vector<RunData>& runs, const PageOptions& options) {
  if (!options.title.empty()) return options.title;
  return runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size());
}

std::string results_section(const std::vector<RunResult>& results) {
  return "<h2>Result" + std::string(results.size() > 1 ? "s" : "") + "</h2>\n" +
         html_table(readable_table(results), "results");
}

std::string differences_section(const std::vector<RunData>& runs) {
  if (runs.size() < 2) return "";
  constexpr size_t kMostBeside = 4;  // more runs stand below each other
  const bool is_row_a_key = runs.size() <= kMostBeside;
  TextTable table{.columns = {is_row_a_key ? "key" : "run"}, .rows = {}};
  const std::vector<Difference> differences = config_differences(runs);
  if (is_row_a_key) {
    for (const RunData& run : runs) table.columns.push_back(run.name);
    for (const Difference& difference : differences) {
      auto& row = table.rows.emplace_back();
      row.push_back(difference.key);
      row.insert(row.end(), difference.values.begin(), difference.values.end());
    }
  } else {
    for (const Difference& difference : differences) table.columns.push_back(difference.key);
    for (size_t i = 0; i < runs.size(); ++i) {
      auto& row = table.rows.emplace_back();
      row.push_back(runs[i].name);
      for (const Difference& difference : differences) row.push_back(difference.values[i]);
    }
  }
  const std::string heading = "<h2>Where the configurations differ</h2>\n";
  if (differences.empty()) return heading + "<p>They are the same.</p>\n";
  return heading + html_table(table, "differences");
}

// Everything that the page shows, for scripts; no text in it can end the element it stands in.
std::string embedded_json(const std::vector<RunData>& runs, const std::vector<RunResult>& results,
                          Config charts) {
  Config list = Config::list();
  const size_t most = points_of_a_layer(runs);
  for (size_t i = 0; i < runs.size(); ++i) list.push_back(run_json(runs[i], i, most, charts));
  Config differences = Config::list();
  for (const Difference& difference : config_differences(runs)) {
    differences.push_back(
        Config::map({{"key", difference.key}, {"values", Config::from_value(difference.values)}}));
  }
  const Config report = Config::map({{"format", 1},
                                     {"lacuna_version", kVersion},
                                     {"results", to_json(results)},
                                     {"differences", differences},
                                     {"runs", list},
                                     {"charts", charts}});
  std::string escaped;
  for (const char c : clean_utf8(report.to_json())) {
    escaped += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return escaped;
}

}  // namespace

std::string render_page(const std::vector<RunData>& runs, const PageOptions& options) {
  std::vector<RunResult> results;
  for (const RunData& run : runs) results.push_back(result_of(run));
  results = sorted_by_result(std::move(results));
  const std::string title = html_text(title_of(runs, options));
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"lead\">Training with lacuna {}</p>\n",
                                 title, html_text(kVersion));
  for (const RunData& run : runs) body += remarks_of(run, runs.size() > 1);
  if (!options.groups.empty()) {
    body += "<h2>Mean and spread over seeds</h2>\n" +
            html_table(readable_table(group_runs(runs, options.groups)), "groups");
  }
  body += results_section(results) + differences_section(runs);
  Config charts = Config::list();
  const std::vector<Chart> overview = overview_charts(runs);
  const size_t most = points_of_a_curve(runs.size());
  if (!overview.empty())
    body += "<h2>Curves</h2>\n" + html_charts(overview, ChartSize::Large, most);
  for (const Chart& chart : overview) charts.push_back(to_json(chart, most));
  const size_t of_layers = points_of_a_layer(runs);
  for (size_t i = 0; i < runs.size(); ++i) body += run_section(runs[i], i, runs.size(), of_layers);
  const std::string json = embedded_json(runs, results, charts);
  const std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      std::string(kPolicy) +
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      title + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n" + uplot_css() + "\n" +
      page_css() + "</style>\n</head>\n<body>\n" + body +
      "<footer>Curves can be zoomed into by uPlot where scripts run: drag to zoom, double click to "
      "go back. The data of this page stands in it as JSON.</footer>\n"
      "<script type=\"application/json\" id=\"lacuna-report\">" +
      json + "</script>\n<script>\n/*!\n" + uplot_license() + "*/\n" + uplot_js() + "\n" +
      page_js() + "</script>\n</body>\n</html>\n";
  return clean_utf8(page);
}

namespace {

// Nothing that a run has written is overwritten, under whatever name it is reached.
void refuse_own_files(const std::string& path, const std::vector<std::string>& folders) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw ConfigError("--out: '" + path + "' is a folder; give the name of a file");
  }
  const fs::path file = fs::weakly_canonical(path, error);
  for (const std::string& folder : folders) {
    const fs::path inside = file.lexically_relative(fs::weakly_canonical(folder, error));
    if (inside.empty() || inside.begin()->string() == "..") continue;
    const bool is_page =
        inside.extension() == ".html" && std::distance(inside.begin(), inside.end()) == 1;
    if (is_page) continue;
    throw ConfigError("--out: '" + path + "' is among the files of the run '" + folder +
                      "'; give another name, as report.html");
  }
}

}  // namespace

std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system follows
  fs::path file = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, error)); ++links) {
    if (links == kMostLinks) throw ConfigError("--out: '" + path + "' is a link to itself");
    file = file.parent_path() / fs::read_symlink(file, error);  // an absolute one replaces the rest
  }
  return file.string();
}

void require_place_of_page(const std::string& path, const std::vector<std::string>& folders) {
  if (path.empty()) throw ConfigError("--out: the name of the file is empty");
  const std::string file = behind_links(path);
  refuse_own_files(file, folders);
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) {
    throw ConfigError("--out '" + path + "': there is no folder '" + folder + "'; make it first");
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw ConfigError("--out '" + path + "': nothing can be written into the folder '" + folder +
                      "'");
  }
}

void write_page(const std::string& path, const std::vector<RunData>& runs,
                const PageOptions& options) {
  std::vector<std::string> folders;
  for (const RunData& run : runs) folders.push_back(run.folder);
  require_place_of_page(path, folders);
  write_file_atomically(behind_links(path), render_page(runs, options));
}

}  // namespace lacuna
