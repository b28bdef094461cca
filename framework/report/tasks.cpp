#include "lacuna/framework/report/tasks.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace lacuna {
namespace {

bool has_curve(const RunData& run, const char* key) {
  return std::ranges::any_of(run.splits, [&](const auto& split) {
    const auto curve = split.second.find(key);
    return curve != split.second.end() && !curve->second.empty();
  });
}

std::string text_of(const Config& map, const char* key) {
  const Config value = map.is_map() ? map.get(key) : Config();
  return value.is_scalar() ? value.text() : "";
}

bool is_text(const std::string& type) { return type == "text" || type == "tokens"; }

std::string kind_of(const RunData& run, const std::string& type) {
  if (is_text(type) || has_curve(run, "perplexity") || has_curve(run, "bits_per_character")) {
    return "language model";
  }
  if (has_curve(run, "r2") || has_curve(run, "rmse")) return "regression";
  const Config data = run.config.is_map() ? run.config.get("data") : Config();
  if (text_of(data, "task") == "regression") return "regression";
  if (has_curve(run, "precision_at_1")) return "several labels";
  return has_curve(run, "accuracy") ? "classification" : "";
}

// "agnews/train" of /data/agnews/train.csv: many files are called train.
std::string name_of_data(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string stem = name.substr(0, name.find('.'));
  constexpr std::array<std::string_view, 5> kCommon{"train", "data", "images", "training", "all"};
  if (slash == std::string::npos || std::ranges::find(kCommon, stem) == kCommon.end()) return name;
  const size_t before = path.rfind('/', slash - 1);
  if (slash == 0) return name;
  return path.substr(before == std::string::npos ? 0 : before + 1);
}

std::string data_of_run(const RunData& run, const std::string& type) {
  constexpr std::array<std::string_view, 3> kOneEach{"mnist", "cifar10", "cifar100"};
  if (std::ranges::find(kOneEach, type) != kOneEach.end() || !run.config.is_map()) return type;
  const Config data = run.config.get("data");
  for (const char* key : {"path", "train", "train_dir", "dir"}) {
    const std::string path = text_of(data, key);
    if (!path.empty()) return type + " " + name_of_data(path);
  }
  return type;
}

}  // namespace

std::string task_of(const RunData& run) {
  const std::string type = run.config.is_map() ? text_of(run.config.get("data"), "type") : "";
  const std::string data = data_of_run(run, type), kind = kind_of(run, type);
  return data + (data.empty() || kind.empty() ? "" : ", ") + kind;
}

namespace {

// A run that was not evaluated yet is one of those with the same data.
std::string task_among(const std::vector<RunResult>& results, const std::string& task) {
  for (const RunResult& other : results) {
    if (!task.empty() && other.task.starts_with(task + ", ")) return other.task;
  }
  return task;
}

}  // namespace

std::vector<std::string> tasks_of(const std::vector<RunResult>& results) {
  std::vector<std::string> tasks;
  for (const RunResult& result : results) tasks.push_back(task_among(results, result.task));
  return tasks;
}

std::vector<TaskResults> ranked_by_task(const std::vector<RunResult>& results) {
  std::vector<TaskResults> tasks;
  for (const RunResult& result : results) {
    const std::string name = task_among(results, result.task);
    auto task = std::ranges::find(tasks, name, &TaskResults::task);
    if (task == tasks.end()) {
      tasks.push_back({.task = name, .results = {}});
      task = tasks.end() - 1;
    }
    task->results.push_back(result);
  }
  for (TaskResults& task : tasks) task.results = sorted_by_result(std::move(task.results));
  return tasks;
}

std::vector<RunResult> all_results(const std::vector<TaskResults>& tasks) {
  std::vector<RunResult> all;
  for (const TaskResults& task : tasks) {
    all.insert(all.end(), task.results.begin(), task.results.end());
  }
  return all;
}

}  // namespace lacuna
