#include "lacuna/framework/program/actions/sweep_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/actions/child_process.hpp"
#include "lacuna/framework/program/actions/config_defaults.hpp"
#include "lacuna/framework/program/actions/picture_size.hpp"
#include "lacuna/framework/program/output/output_guard.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/sweep_plan.hpp"
#include "lacuna/framework/program/settings/sweep_settings.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/differences.hpp"
#include "lacuna/framework/report/page.hpp"
#include "lacuna/framework/report/run_search.hpp"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

constexpr int kWrongUsage = 2;  // the exit code of a run that its configuration does not allow

volatile std::sig_atomic_t last_signal = 0;
volatile std::sig_atomic_t signals = 0;

extern "C" void note_sweep_signal(int signal) {
  last_signal = signal;
  signals = signals + 1;
}

// Notes SIGINT and SIGTERM while it lives.
class SweepSignals {
 public:
  SweepSignals() {
    last_signal = 0;
    signals = 0;
    interrupt_ = std::signal(SIGINT, note_sweep_signal);
    terminate_ = std::signal(SIGTERM, note_sweep_signal);
  }
  ~SweepSignals() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGTERM, terminate_);
  }
  SweepSignals(const SweepSignals&) = delete;
  SweepSignals& operator=(const SweepSignals&) = delete;

 private:
  using Handler = void (*)(int);
  Handler interrupt_, terminate_;
};

// Folders on the way to one that are not there yet. Those that are empty at the end, as after a
// sweep that cannot be planned, are removed.
class NewFolders {
 public:
  explicit NewFolders(const fs::path& folder) {
    std::error_code unknown;
    for (fs::path at = folder; !at.empty() && !fs::exists(at, unknown); at = at.parent_path()) {
      folders_.push_back(at);
      if (at == at.parent_path()) break;
    }
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    for (const fs::path& folder : folders_) {  // the innermost first
      std::error_code ignored;
      if (!fs::is_empty(folder, ignored) || ignored) return;
      fs::remove(folder, ignored);
    }
  }

 private:
  std::vector<fs::path> folders_;
};

// The file from which the runs of a sweep read their configuration: one that is given as a tree is
// written for them, and removed again unless the sweep begins.
class ConfigFile {
 public:
  explicit ConfigFile(const SweepRequest& request)
      : path_(request.config_path), is_kept_(!path_.empty()) {
    if (is_kept_) return;
    path_ = request.run_dir + "/given.yaml";
    write_file_atomically(path_, request.config.to_yaml());
  }
  ~ConfigFile() {
    std::error_code ignored;
    if (!is_kept_) fs::remove(path_, ignored);
  }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  const std::string& path() const { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_;
};

class Sweep {
 public:
  explicit Sweep(const SweepRequest& request) : request_(request) {
    Config config =
        request_.config_path.empty() ? request_.config.clone() : load_yaml(request_.config_path);
    // Not by apply_overrides: sweep.yaml of earlier sweeps has all that was set.
    for (const std::string& text : request.overrides) apply_assignment(config, text);
    const Config train = config.is_map() ? config.get("train") : Config();
    const bool is_seeded = train.is_map() && train.has("seed");
    const int64_t first = is_seeded ? train.required<int64_t>("seed") : 0;
    has_threads_ = train.is_map() && train.has("threads");
    plan_ = plan_sweep(request.over, first, request.seeds,
                       {.count = request.random, .seed = request.random_seed});
    for (const std::string& over : request.over) {
      for (const std::string& key : read_axis(over).keys) {
        keys_.push_back(key);
        refuse_key(key);
      }
    }
    config_ = config;
    for (const SweepRun& run : plan_) {  // reports what cannot be set before anything runs
      Config tried = config.clone();
      apply_overrides(tried, run.overrides);
    }
  }

  SweepResult run() {
    std::error_code error;
    if (fs::exists(request_.run_dir + "/config.yaml", error)) {
      throw ConfigError("--run-dir: '" + request_.run_dir +
                        "' holds a run; give another folder: the runs of a sweep need one of their "
                        "own");
    }
    const NewFolders new_folders(request_.run_dir);
    fs::create_directories(request_.run_dir, error);
    if (error) {
      throw StateError("cannot make the folder '" + request_.run_dir + "': " + error.message());
    }
    const FolderLock lock(request_.run_dir);
    if (!lock.is_taken()) {
      throw StateError("another sweep is running in '" + request_.run_dir +
                       "'; wait until it ends, or give another --run-dir");
    }
    require_inputs_kept();
    ConfigFile config_file(request_);
    config_path_ = config_file.path();
    settings_ = SweepSettings(request_.run_dir, config_, keys_);
    for (size_t place = 0; place < plan_.size(); ++place) {
      if (fs::exists(folder(place) + "/config.yaml")) settings_->require_same(plan_[place]);
    }
    if (plan_.size() > 1) log_info(fmt::format("{} runs are planned", plan_.size()));
    for (size_t place = 0; place < plan_.size(); ++place) {
      const bool is_first = place == 0 || plan_[place].label != plan_[place - 1].label;
      if (is_first && !fs::exists(folder(place) + "/config.yaml")) require_plan(place);
    }
    settings_->write();
    config_file.keep();
    const SweepSignals noting;
    while (last_signal == 0 && (next_ < plan_.size() || !running_.empty())) {
      start_more();
      look_at_running();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    SweepResult result = last_signal != 0 ? SweepResult{.signal = end_children()} : results();
    result.failed = failed_;
    return result;
  }

 private:
  struct Running {
    size_t place;
    ChildProcess process;
  };

  // A key that a sweep varies has no other value, and its runs have their own folders.
  void refuse_key(const std::string& key) const {
    if (key == "run_dir") throw ConfigError("--over run_dir: the runs' folders are in --run-dir");
    for (const std::string& text : request_.overrides) {
      if (text.substr(0, text.find('=')) != key) continue;
      throw ConfigError("--set " + text + ": --over already varies " + key +
                        "; use only one of the two");
    }
  }

  // What is written next to the runs is not a part of their configuration.
  void require_inputs_kept() const {
    std::vector<std::string> read = files_named_in(config_);
    if (!request_.config_path.empty()) read.push_back(request_.config_path);
    read.insert(read.end(), request_.over.begin(), request_.over.end());
    std::vector<std::string> written = {request_.run_dir + "/plan.log",
                                        request_.run_dir + "/report.html"};
    for (size_t place = 0; place < plan_.size(); ++place) written.push_back(log_path(place));
    for (const std::string& path : written) require_not_read("--run-dir: its file", path, read);
  }

  // What no run could begin with is found out before any has run.
  void require_plan(size_t place) const {
    const std::string log = request_.run_dir + "/plan.log";
    std::vector<std::string> all = {"plan", config_path_};
    for (const auto* overrides : {&request_.overrides, &plan_[place].overrides}) {
      for (const std::string& text : *overrides) all.insert(all.end(), {"--set", text});
    }
    ChildProcess process(request_.program, all, log);
    std::optional<int> code;
    while (!(code = process.ended())) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream file(log);
    std::string last;
    for (std::string line; std::getline(file, line);) last = line;
    std::error_code ignored;
    fs::remove(log, ignored);
    if (*code == 0) return;
    const std::string error = "error: ";
    const std::string what =
        plan_[place].name + ": " + last.substr(last.starts_with(error) ? error.size() : 0);
    if (*code == kWrongUsage) throw ConfigError(what);
    throw StateError(what);
  }

  // An earlier version has given its runs longer names; they go on under these.
  std::string folder(size_t place) const {
    const std::string before = request_.run_dir + "/" + plan_[place].long_name;
    std::error_code unknown;
    if (fs::exists(before + "/config.yaml", unknown)) return before;
    return request_.run_dir + "/" + plan_[place].name;
  }
  std::string log_path(size_t place) const { return folder(place) + ".log"; }
  void say(size_t place, const std::string& what) const {
    log_info(fmt::format("{}/{}  {}: {}", place + 1, plan_.size(), plan_[place].name, what));
  }

  std::vector<std::string> arguments(size_t place) const {
    if (fs::exists(folder(place) + "/config.yaml")) {
      return {"train", "--resume", "--run-dir", folder(place), "--quiet"};
    }
    std::vector<std::string> all = {"train", config_path_, "--run-dir", folder(place), "--quiet"};
    std::vector<std::string> overrides = request_.overrides;
    const std::vector<std::string>& own = plan_[place].overrides;
    overrides.insert(overrides.end(), own.begin(), own.end());
    if (request_.jobs > 1 && !has_threads_) {  // the cores are shared out
      const auto threads = std::max<int64_t>(1, num_threads() / request_.jobs);
      overrides.push_back(fmt::format("train.threads={}", threads));
    }
    for (const std::string& text : overrides) all.insert(all.end(), {"--set", text});
    return all;
  }

  void start_more() {
    while (next_ < plan_.size() && std::ssize(running_) < request_.jobs) {
      if (is_locked(folder(next_))) {  // by a run of a sweep that was killed, which is ending
        if (waits_for_ != next_)
          say(next_, "another process is training in it; waiting until it ends");
        waits_for_ = next_;
        return;
      }
      const size_t place = next_++;
      if (has_ended(folder(place))) {
        std::error_code ignored;  // no failure's output: the run ended after its sweep was killed
        fs::remove(log_path(place), ignored);
        say(place, "has finished already");
        continue;
      }
      const bool is_begun = fs::exists(folder(place) + "/config.yaml");
      say(place, is_begun ? "goes on" : "begins");
      if (!is_begun) settings_->keep(plan_[place]);
      running_.push_back(
          {place, ChildProcess(request_.program, arguments(place), log_path(place))});
    }
  }

  void look_at_running() {
    for (size_t i = 0; i < running_.size();) {
      const auto code = running_[i].process.ended();
      if (!code) {
        ++i;
        continue;
      }
      take_end(running_[i].place, *code);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // The output of a run is kept if it failed.
  void take_end(size_t place, int code) {
    if (code == 0) {
      std::error_code ignored;
      fs::remove(log_path(place), ignored);
      const RunResult result = result_of(read_run(folder(place), 0));
      const std::string metric =
          !std::isnan(result.accuracy) ? fmt::format("accuracy {:.2f} %", 100.0 * result.accuracy)
          : !std::isnan(result.precision_at_1)
              ? fmt::format("precision at 1 {:.2f} %", 100.0 * result.precision_at_1)
          : !std::isnan(result.r2) ? fmt::format("R² {:.4f}", result.r2)
                                   : fmt::format("loss {:.4g}", result.loss);
      say(place, result.split.empty() ? "no result" : result.split + " " + metric);
      return;
    }
    if (last_signal != 0) return;
    ++failed_;
    log_error(
        fmt::format("{} failed ({}); its output is in {}", plan_[place].name,
                    code < 0 ? fmt::format("signal {}", -code) : fmt::format("exit code {}", code),
                    log_path(place)));
  }

  // Each signal is passed on, so that a second one ends the runs at once, as for a single run.
  int end_children() {
    const int signal = last_signal;
    int handed_on = 0;
    while (!running_.empty()) {
      for (; handed_on < signals; ++handed_on) {
        for (const Running& run : running_) run.process.signal(last_signal);
      }
      look_at_running();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    log_warning("stopped; repeat the command to continue");
    return signal;
  }

  SweepResult results() const {
    std::vector<std::string> folders, labels;
    for (size_t place = 0; place < plan_.size(); ++place) {
      if (!fs::exists(folder(place) + "/config.yaml")) continue;  // failed before it began
      folders.push_back(folder(place));
      labels.push_back(plan_[place].label);
    }
    if (folders.empty()) return {};
    std::vector<RunData> runs = read_runs(folders, kMostPixels);
    find_defaults(runs);
    std::vector<std::string> apart = labels;
    set_apart(runs, apart);
    SweepResult result{.text = clean_utf8(readable_table(group_runs(runs, apart)).text()),
                       .page = request_.run_dir + "/report.html",
                       .runs = folders};
    const std::string name = request_.config_path.empty() ? request_.run_dir : request_.config_path;
    write_page(result.page, runs, {.title = "Sweep of " + name, .groups = labels});
    return result;
  }

  SweepRequest request_;
  Config config_;
  std::string config_path_ = {};   // that the runs read
  std::vector<std::string> keys_;  // that the sweep varies
  std::optional<SweepSettings> settings_;
  bool has_threads_ = false;
  std::vector<SweepRun> plan_;
  std::vector<Running> running_;
  size_t next_ = 0;
  std::optional<size_t> waits_for_ = {};
  int failed_ = 0;
};

}  // namespace

SweepResult sweep_runs(const SweepRequest& request) { return Sweep(request).run(); }

}  // namespace lacuna
