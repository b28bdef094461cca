#include "lacuna/framework/report/page.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/differences.hpp"
#include "lacuna/framework/report/embedded_files.hpp"
#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/html_table.hpp"
#include "lacuna/framework/report/page_header.hpp"
#include "lacuna/framework/report/run_groups.hpp"
#include "lacuna/framework/report/run_names.hpp"
#include "lacuna/framework/report/run_section.hpp"
#include "lacuna/framework/report/run_table.hpp"
#include "lacuna/framework/report/scatter.hpp"
#include "lacuna/framework/report/tasks.hpp"

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

// What is shown of all runs together.
struct PageContent {
  std::vector<RunResult> results;  // in the runs' order
  std::vector<TaskResults> tasks;
  std::vector<RunGroup> groups;
  std::vector<Difference> differences;
  bool is_grouped = false;
};

PageContent content_of(const std::vector<RunData>& runs, const PageOptions& options) {
  PageContent content;
  for (const RunData& run : runs) content.results.push_back(result_of(run));
  content.tasks = ranked_by_task(content.results);
  std::vector<std::string> labels = options.groups.empty() ? seed_labels(runs) : options.groups;
  const std::vector<RunGroup> groups = groups_of(labels);
  std::vector<std::string> names;
  for (const RunGroup& group : groups) names.push_back(group.label);
  names = short_labels(names);
  for (size_t g = 0; g < names.size(); ++g) {
    for (const size_t run : groups[g].runs) labels[run] = names[g];
  }
  set_apart(runs, labels);
  content.groups = groups_of(labels);
  content.is_grouped = runs.size() > 1 && has_repetitions(content.groups);
  content.differences = config_differences(runs);
  return content;
}

std::vector<RowMark> marks_of(const std::vector<RunResult>& rows, const PageContent& content) {
  std::vector<RowMark> marks;
  if (content.results.size() < 2) return marks;
  for (const RunResult& row : rows) {
    const auto place = std::ranges::find(content.results, row.folder, &RunResult::folder);
    const auto run = static_cast<int>(place - content.results.begin());
    marks.push_back({.run = run, .title = row.folder, .swatch = swatch(style_of(run))});
  }
  return marks;
}

std::string results_section(const PageContent& content) {
  const bool is_one = content.results.size() == 1;
  std::string html = is_one ? "<h2>Result</h2>\n" : "<h2>Results</h2>\n";
  for (size_t t = 0; t < content.tasks.size(); ++t) {
    const TaskResults& task = content.tasks[t];
    if (content.tasks.size() > 1) {
      html += "<h3>" + html_text(task.task.empty() ? "other runs" : task.task) + "</h3>\n";
    }
    html +=
        html_table(readable_table(task.results), t == 0 ? "results" : fmt::format("results-{}", t),
                   marks_of(task.results, content));
  }
  return html;
}

// Groups of one task are ranked together.
std::string groups_section(const PageContent& content, const PageOptions& options) {
  if (!content.is_grouped && options.groups.empty()) return "";
  std::string html = "<h2>Mean and spread over seeds</h2>\n";
  const std::vector<RunGroup> tasks = groups_of(tasks_of(content.results));
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::vector<RunResult> of_task;
    std::vector<std::string> labels;
    for (const size_t run : tasks[t].runs) {
      of_task.push_back(content.results[run]);
      for (const RunGroup& group : content.groups) {
        if (std::ranges::find(group.runs, run) != group.runs.end()) labels.push_back(group.label);
      }
    }
    const std::vector<SeedGroup> ranked = group_results(of_task, labels);
    std::vector<RowMark> marks;
    for (const SeedGroup& row : ranked) {
      const auto place = std::ranges::find(content.groups, row.name, &RunGroup::label);
      marks.push_back(
          {.swatch = swatch(style_of(static_cast<int>(place - content.groups.begin())))});
    }
    if (tasks.size() > 1) html += "<h3>" + html_text(tasks[t].label) + "</h3>\n";
    html += html_table(readable_table(ranked), t == 0 ? "groups" : fmt::format("groups-{}", t),
                       content.is_grouped ? marks : std::vector<RowMark>{});
  }
  return html;
}

// Of runs of one task, by their places among all.
std::string differences_table(const std::vector<RunData>& runs, const std::vector<size_t>& places,
                              const std::string& id) {
  constexpr size_t kMostBeside = 4;  // more runs stand below each other
  const bool is_row_a_key = places.size() <= kMostBeside;
  TextTable table{.columns = {is_row_a_key ? "key" : "run"}, .rows = {}};
  std::vector<RowMark> marks;
  const std::vector<Difference> differences = config_differences(runs, places);
  if (differences.empty()) return "<p>They are the same.</p>\n";
  if (is_row_a_key) {
    for (const size_t place : places) table.columns.push_back(runs[place].label);
    for (const Difference& difference : differences) {
      auto& row = table.rows.emplace_back();
      row.push_back(difference.key);
      row.insert(row.end(), difference.values.begin(), difference.values.end());
    }
    return html_table(table, id);
  }
  for (const Difference& difference : differences) table.columns.push_back(difference.key);
  for (size_t i = 0; i < places.size(); ++i) {
    const RunData& run = runs[places[i]];
    auto& row = table.rows.emplace_back();
    row.push_back(run.label);
    for (const Difference& difference : differences) row.push_back(difference.values[i]);
    const auto place = static_cast<int>(places[i]);
    marks.push_back({.run = place, .title = run.folder, .swatch = swatch(style_of(place))});
  }
  return html_table(table, id, marks);
}

std::string differences_section(const std::vector<RunData>& runs, const PageContent& content) {
  if (runs.size() < 2) return "";
  std::string html = "<h2>Where the configurations differ</h2>\n";
  const std::vector<RunGroup> tasks = groups_of(tasks_of(content.results));
  size_t tables = 0;
  for (const RunGroup& task : tasks) {
    if (task.runs.size() < 2) continue;
    const std::string id =
        tables == 0 ? std::string("differences") : fmt::format("differences-{}", tables);
    ++tables;
    if (tasks.size() > 1) html += "<h3>" + html_text(task.label) + "</h3>\n";
    html += differences_table(runs, task.runs, id);
  }
  return tables == 0 ? "" : html;
}

// The runs' names with their colours, and the groups'; one of both is shown.
std::string keys_of(const std::vector<RunData>& runs, const PageContent& content) {
  if (runs.size() < 2) return "";
  std::string html = "<div class=\"key above of-runs\">";
  for (size_t i = 0; i < runs.size(); ++i) {
    html +=
        fmt::format("<span data-run=\"{}\" title=\"{}\">{}{}</span>", i, html_text(runs[i].folder),
                    swatch(style_of(static_cast<int>(i))), html_text(runs[i].label));
  }
  html += "</div>\n";
  if (!content.is_grouped) return html;
  html += "<div class=\"key above of-groups\">";
  for (size_t g = 0; g < content.groups.size(); ++g) {
    const RunGroup& group = content.groups[g];
    html += fmt::format("<span data-group=\"{}\">{}{} ({})</span>", g,
                        swatch(style_of(static_cast<int>(g))), html_text(group.label),
                        group.runs.size());
  }
  return html +
         "</div>\n<p class=\"note of-groups\">Lines are means over seeds; bands are plus and minus "
         "one standard deviation.</p>\n";
}

std::string scatter_section(const PageContent& content) {
  const std::vector<ScatterSet> sets = scatter_sets(content.results, content.groups);
  if (sets.empty()) return "";
  std::string html = "<h2>Results against their cost</h2>\n";
  for (const ScatterSet& set : sets) {
    const std::string charts = html_charts(set.charts, ChartSize::Points, 1, ChartKey::Above);
    const std::string title = html_text(set.title);
    html += set.is_main ? "<h3>" + title + "</h3>\n" + charts
                        : "<details><summary>" + title + "</summary>\n" + charts + "</details>\n";
  }
  return html;
}

// Curves and masks of layers, the best runs' first, as far as the page does not become too large;
// likewise configurations.
std::vector<RunDetails> details_of(const std::vector<RunData>& runs, const PageContent& content) {
  constexpr size_t kMostOfLayers = 1'000'000, kMostOfConfigs = 400'000;
  const size_t points = points_of_a_layer(runs);
  std::vector<RunDetails> details(runs.size());
  size_t of_layers = 0, of_configs = 0;
  for (const RunResult& result : all_results(content.tasks)) {
    const auto place = std::ranges::find(runs, result.folder, &RunData::folder);
    const auto run = static_cast<size_t>(place - runs.begin());
    LayerDetails layers = layer_details(runs[run], run, points);
    of_layers += layers.bytes();
    of_configs += runs[run].config.to_yaml().size();
    details[run].has_layers = runs.size() == 1 || of_layers <= kMostOfLayers;
    details[run].has_config = runs.size() == 1 || of_configs <= kMostOfConfigs;
    if (details[run].has_layers) details[run].layers = std::move(layers);
  }
  return details;
}

std::string runs_section(const std::vector<RunData>& runs, const std::vector<RunDetails>& details) {
  constexpr size_t kMostListed = 12;
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) html += run_section(runs[i], i, runs.size(), details[i]);
  if (runs.size() == 1) return html;
  html += html_starts(runs);
  if (runs.size() <= kMostListed) return "<h2>Each run</h2>\n" + html;
  return "<h2>Each run</h2>\n<details><summary>Layers, masks and configurations of " +
         std::to_string(runs.size()) + " runs</summary>\n" + html + "</details>\n";
}

// Everything that the page shows, for scripts; no text in it can end the element it stands in.
std::string embedded_json(const std::vector<RunData>& runs, const PageContent& content,
                          const std::vector<RunDetails>& details, Config charts) {
  Config list = Config::list();
  for (size_t i = 0; i < runs.size(); ++i) {
    list.push_back(run_json(runs[i], i, details[i].has_layers));
    for (const Config& chart : details[i].layers.charts.items()) charts.push_back(chart);
  }
  Config differences = Config::list();
  for (const Difference& difference : content.differences) {
    differences.push_back(
        Config::map({{"key", difference.key}, {"values", Config::from_value(difference.values)}}));
  }
  Config groups = Config::list();
  for (const RunGroup& group : content.groups) {
    Config members = Config::list();
    for (const size_t run : group.runs) members.push_back(static_cast<int64_t>(run));
    groups.push_back(Config::map({{"label", group.label}, {"runs", members}}));
  }
  const Config report = Config::map({{"format", 1},
                                     {"lacuna_version", kVersion},
                                     {"results", to_json(all_results(content.tasks))},
                                     {"differences", differences},
                                     {"groups", groups},
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
  const PageContent content = content_of(runs, options);
  const std::string title = html_text(title_of(runs, options));
  const std::vector<Chart> overview =
      overview_charts(runs, content.is_grouped ? content.groups : std::vector<RunGroup>{});
  const std::vector<RunDetails> details = details_of(runs, content);
  const size_t most = points_of_a_curve(runs.size());
  Config charts = Config::list();
  for (const Chart& chart : overview) charts.push_back(to_json(chart, most));
  std::string body = "<h1>" + title + "</h1>\n" + html_header(runs) + html_remarks(runs) +
                     groups_section(content, options) + results_section(content);
  if (!overview.empty()) {
    body += "<h2 id=\"curves\">Curves</h2>\n" + keys_of(runs, content) +
            html_charts(overview, ChartSize::Large, most,
                        runs.size() > 1 ? ChartKey::Above : ChartKey::Shown);
  }
  body +=
      scatter_section(content) + differences_section(runs, content) + runs_section(runs, details);
  const std::string json = embedded_json(runs, content, details, charts);
  const std::string page =
      std::string("<!DOCTYPE html>\n<html lang=\"en\"") +
      (content.is_grouped ? " class=\"grouped\"" : "") +
      ">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      kPolicy +
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      title + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n" + uplot_css() + "\n" +
      page_css() + "</style>\n</head>\n<body>\n" + body + "<footer>Written by lacuna " +
      html_text(kVersion) +
      ". With scripts enabled, drag to zoom into a curve (double-click to go back), and click a "
      "column to sort a table. The page contains its data as JSON.</footer>\n"
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
