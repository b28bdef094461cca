#include "lacuna/framework/program/actions/import_weights.h"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/interop/suggested_config.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"

namespace lacuna {

std::string suggested_yaml(const std::string& file, const ReportLine& report_line) {
  const SuggestedConfig suggested = suggest_config(file);
  if (!suggested.yaml) {
    if (report_line) {
      report_line(file + " holds:");
      for (const std::string& line : suggested.found) report_line("  " + line);
    }
    throw ConfigError(
        fmt::format("no configuration can be made for '{}': {}. Write a configuration whose layers "
                    "have these names (docs/guides/models.md), and give it as --config",
                    file, suggested.reason));
  }
  if (report_line) report_line(file + ": " + suggested.what);
  return *suggested.yaml;
}

ImportedRun import_weights(const ImportRequest& request) {
  Config config = request.config.is_empty()
                      ? parse_yaml(suggested_yaml(request.file, request.report_line),
                                   suggested_name(request.file))
                      : read_given(request.config, request.report_line);
  apply_overrides(config, request.config.overrides);
  write_new_run_keys(config.peek("data"));
  make_paths_absolute(config);
  apply_process_options(config);
  return import_run(request.file, config, request.run_dir, {.find_pattern = request.find_pattern});
}

}  // namespace lacuna
