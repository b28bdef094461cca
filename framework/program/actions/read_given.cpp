#include "lacuna/framework/program/actions/read_given.hpp"

#include <string>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

Config read_given(const GivenConfig& given, const ReportLine& report_line) {
  if (given.path.empty()) return given.tree.clone();
  Config config = load_yaml(given.path);
  for (const std::string& line : find_beside(config, given.path)) {
    if (report_line) report_line(line);
  }
  return config;
}

void apply_process_options(const Config& config) {
  if (!config.is_map()) return;  // which is an error when the experiment is built
  // Of a clone: the experiment reads the section again, and writes its defaults.
  Config section = config.clone().get("train");
  if (section.is_map()) section.erase("seconds");  // which is made steps when that is measured
  const TrainOptions train = TrainOptions::from_config(section);
  if (train.threads > 0) set_num_threads(train.threads);
  set_fallback_policy(train.layout_fallback);
  set_fallback_notice([](const std::string& text) { log_warning(text); });
}

}  // namespace lacuna
