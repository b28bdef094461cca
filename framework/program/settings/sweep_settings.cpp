#include "lacuna/framework/program/settings/sweep_settings.hpp"

#include <filesystem>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/settings/config_changes.hpp"

namespace lacuna {

SweepSettings::SweepSettings(const std::string& run_dir, const Config& config,
                             std::vector<std::string> varied)
    : path_(run_dir + "/sweep.yaml"),
      config_(config),
      common_(config.clone()),
      runs_(Config::map()),
      varied_(std::move(varied)) {
  if (!std::filesystem::exists(path_)) return;
  common_ = load_yaml(path_);
  if (common_.is_map() && common_.has("runs")) runs_ = common_.get("runs").clone();
  if (common_.is_map()) common_.erase("runs");
  require_same("the runs in '" + run_dir + "' have", common_, config_, varied_);
}

void SweepSettings::require_same(const SweepRun& run) const {
  if (!runs_.is_map() || !runs_.has(run.name)) return;
  Config before = common_.clone(), now = config_.clone();
  apply_overrides(before, runs_.get(run.name).as<std::vector<std::string>>());
  apply_overrides(now, run.overrides);
  require_same("the run '" + run.name + "' has", before, now, {});
}

void SweepSettings::require_same(const std::string& whose, const Config& before, const Config& now,
                                 const std::vector<std::string>& but) const {
  std::vector<std::string> ignored = {"run_dir",           "train.seed",      "train.threads",
                                      "train.tensorboard", "train.log_every", "train.prefetch"};
  ignored.insert(ignored.end(), but.begin(), but.end());
  const std::vector<std::string> lines = differences_in_words(before, now, ignored);
  if (lines.empty()) return;
  throw ConfigError(whose + " other settings (" + path_ + "): " + join(lines, "; ") +
                    "; give these, or another --run-dir");
}

void SweepSettings::keep(const SweepRun& run) {
  std::vector<std::string> given;
  for (const std::string& key : varied_) {  // where it varies none of them, the configuration's
    const Config value = config_.peek(key);
    if (!value.is_null()) given.push_back(key + "=" + value.to_json());
  }
  given.insert(given.end(), run.overrides.begin(), run.overrides.end());
  runs_.set(run.name, Config::from_value(given));
  write();
}

void SweepSettings::write() const {
  Config all = common_.clone();
  if (!runs_.children().empty()) all.set("runs", runs_.clone());
  write_file_atomically(path_, all.to_yaml());
}

}  // namespace lacuna
