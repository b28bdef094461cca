// sweep.yaml: what the runs of a sweep were given.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/settings/sweep_plan.hpp"

namespace lacuna {

/// The configuration that the runs of a folder have in common and, under `runs`, the additional
/// settings of each. A run is repeated, or continued, only with the same settings.
class SweepSettings {
 public:
  /// `config` is what all runs have in common this time, `varied` are the keys of which they have
  /// values of their own. *Errors:* ConfigError that names the other keys in which the folder's
  /// sweep.yaml differs.
  SweepSettings(const std::string& run_dir, const Config& config, std::vector<std::string> varied);

  /// Of a run that has begun. *Errors:* ConfigError that names the keys in which it differs.
  void require_same(const SweepRun& run) const;
  /// Writes the file, with the settings of a run that begins.
  void keep(const SweepRun& run);
  void write() const;

 private:
  void require_same(const std::string& whose, const Config& before, const Config& now,
                    const std::vector<std::string>& but) const;

  std::string path_;
  Config config_, common_, runs_;
  std::vector<std::string> varied_;
};

}  // namespace lacuna
