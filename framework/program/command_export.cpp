// `lacuna export` and `lacuna import`: runs into other tools' files, and out of them.
#include <cstdio>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/interop/import_run.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/output_guard.hpp"
#include "lacuna/framework/program/process_options.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"

namespace lacuna {

int run_export(const ExportCommand& command) {
  if (command.format.empty() && !command.card) {
    std::vector<std::string> formats;
    for (const auto& [name, about] : export_formats()) formats.push_back(name);
    throw ConfigError("--format is missing; valid are: " + join(formats, ", ") +
                      " (or --card for a model card)");
  }
  require_no_file_of_a_run("--out", command.out);
  require_not_read("--out", command.out, {command.checkpoint});
  require_run_for_last(command.checkpoint, command.last);
  const ExportedRun exported =
      export_run(command.checkpoint, command.out,
                 {.format = command.format,
                  .masks = command.masks,
                  .overwrite = command.overwrite,
                  .card = command.card,
                  .kept = command.last ? KeptCheckpoint::Last : KeptCheckpoint::Best});
  if (command.format.empty()) {
    std::printf("the card of step %lld in %s is now %s; its licence is to be filled in\n",
                static_cast<long long>(exported.step), exported.checkpoint.c_str(),
                command.out.c_str());
    return kDone;
  }
  std::printf("%s of step %lld in %s is now in %s (%s)\n",
              exported.is_averaged ? "the average of the weights, as eval takes it," : "the model",
              static_cast<long long>(exported.step), exported.checkpoint.c_str(),
              command.out.c_str(), command.format.c_str());
  for (const std::string& note : exported.notes) log_warning(note);
  return kDone;
}

int run_import(const ImportCommand& command) {
  Config config = load_yaml(command.config_path);
  for (const std::string& line : find_beside(config, command.config_path)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  apply_overrides(config, command.overrides);
  write_new_run_keys(config);
  make_paths_absolute(config);
  apply_process_options(config);
  const ImportedRun imported =
      import_run(command.file, config, command.out, {.find_pattern = command.find_pattern});
  for (const std::string& note : imported.notes) std::printf("%s\n", note.c_str());
  std::printf("%s: %lld parameters, %lld of them at positions of the masks, from %s\n",
              imported.checkpoint.c_str(), static_cast<long long>(imported.numel),
              static_cast<long long>(imported.nnz), command.file.c_str());
  return kDone;
}

}  // namespace lacuna
