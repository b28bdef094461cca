#include "lacuna/framework/report/page_header.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "lacuna/framework/core/version.h"
#include "lacuna/framework/records/start_record.hpp"
#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/html_table.hpp"

namespace lacuna {
namespace {

// "2026-11-26 00:46 UTC" of "2026-11-26T00:46:00Z"; a time of a log file is the machine's own.
std::string time_in_words(const std::string& time) {
  if (time.size() < 16) return time;
  return time.substr(0, 10) + " " + time.substr(11, 5) + (time.ends_with('Z') ? " UTC" : "");
}

std::string threads_in_words(int64_t threads) {
  if (threads == 0) return "";
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// The content of a run's first start and its summary.
RunStart start_of(const RunData& run) {
  RunStart start = run.starts.empty() ? RunStart{} : run.starts.front();
  if (!run.summary.is_map()) return start;
  const Config threads = run.summary.get("threads"), version = run.summary.get("version");
  if (start.threads == 0 && threads.is_number()) start.threads = threads.as<int64_t>();
  if (start.version.empty() && version.is_scalar()) start.version = version.text();
  return start;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : " · ") + part;
  }
  return text;
}

std::string with_lacuna(const std::string& version) {
  return version.empty() ? "" : "lacuna " + version;
}

// The values that are known, where they are one or two.
std::string in_common(std::set<std::string> values) {
  values.erase("");
  if (values.size() > 2) return "";
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : " and ") + value;
  return text;
}

std::string header_of_many(const std::vector<RunData>& runs) {
  std::set<std::string> times, machines, threads, versions;
  int64_t finished = 0;
  for (const RunData& run : runs) {
    const RunStart start = start_of(run);
    if (!start.time.empty()) times.insert(start.time);
    machines.insert(start.machine);
    threads.insert(threads_in_words(start.threads));
    versions.insert(with_lacuna(start.version));
    finished += run.state == "finished" || run.state == "stopped early" ? 1 : 0;
  }
  std::string when;
  if (!times.empty()) {
    const std::string first = time_in_words(*times.begin()), last = time_in_words(*times.rbegin());
    when = first.substr(0, 10) == last.substr(0, 10)
               ? first.substr(0, 10)
               : first.substr(0, 10) + " to " + last.substr(0, 10);
  }
  const auto count = static_cast<int64_t>(runs.size());
  const std::string ended = finished == count
                                ? fmt::format("{} runs, all finished", count)
                                : fmt::format("{} of {} runs finished", finished, count);
  return joined({ended, when, in_common(machines), in_common(threads), in_common(versions)});
}

}  // namespace

std::string html_header(const std::vector<RunData>& runs) {
  if (runs.size() > 1) {
    return "<p class=\"lead\">" + html_text(header_of_many(runs)) + "</p>\n";
  }
  const RunStart start = start_of(runs[0]);
  const size_t starts = runs[0].starts.size();
  const std::string again = starts < 2    ? ""
                            : starts == 2 ? "continued once"
                                          : fmt::format("continued {} times", starts - 1);
  std::string html =
      "<p class=\"lead\">" +
      html_text(joined({runs[0].state, time_in_words(start.time), start.machine,
                        threads_in_words(start.threads), with_lacuna(start.version), again})) +
      "</p>\n";
  if (start.command.empty()) return html;
  return html + "<p class=\"command\"><code>" + html_text(with_short_paths(start.command)) +
         "</code></p>\n";
}

std::string html_starts(const std::vector<RunData>& runs) {
  if (runs.size() < 2) return "";
  TextTable table{.columns = {"run", "state", "begun", "machine", "threads", "lacuna", "command"},
                  .rows = {}};
  for (const RunData& run : runs) {
    const RunStart start = start_of(run);
    table.rows.push_back({run.label, run.state, time_in_words(start.time), start.machine,
                          start.threads == 0 ? "-" : std::to_string(start.threads), start.version,
                          with_short_paths(start.command)});
  }
  return "<details><summary>When, where and how they were run</summary>\n" +
         html_table(table, "starts") + "</details>\n";
}

std::string html_remarks(const std::vector<RunData>& runs) {
  constexpr size_t kMostShown = 6;
  std::vector<std::string> lines;
  for (const RunData& run : runs) {
    for (const std::string& remark : run.remarks) {
      lines.push_back("<p class=\"remark\">" +
                      html_text((runs.size() > 1 ? run.label + ": " : std::string()) + remark) +
                      "</p>\n");
    }
  }
  std::string html;
  const size_t shown = lines.size() <= kMostShown + 1 ? lines.size() : kMostShown;
  for (size_t i = 0; i < shown; ++i) html += lines[i];
  if (shown == lines.size()) return html;
  html += fmt::format("<details><summary>{} more remarks</summary>\n", lines.size() - shown);
  for (size_t i = shown; i < lines.size(); ++i) html += lines[i];
  return html + "</details>\n";
}

}  // namespace lacuna
