// `lacuna export` and `lacuna import`: runs into other tools' files, and out of them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/interop/suggested_config.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/program/actions/import_weights.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/output_guard.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"

namespace lacuna {
namespace {

// "5.02 kB".
std::string readable(int64_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (count < 1e6) return fmt::format("{:.3g} kB", count / 1e3);
  return count < 1e9 ? fmt::format("{:.3g} MB", count / 1e6)
                     : fmt::format("{:.3g} GB", count / 1e9);
}

}  // namespace

int run_export(const ExportCommand& command) {
  if (command.format.empty() && !command.card) {
    std::vector<std::string> formats;
    for (const auto& [name, about] : export_formats()) formats.push_back(name);
    throw ConfigError("--format is missing; formats: " + join(formats, ", ") +
                      " (or --card for a model card)");
  }
  require_no_file_of_a_run("--out", command.out);
  require_not_read("--out", command.out, {command.checkpoint});
  require_run_for_last(command.checkpoint, command.last);
  const ExportedRun exported =
      export_run(command.checkpoint, command.out,
                 {.format = command.format,
                  .masks = command.masks,
                  .sparse = command.sparse,
                  .only = command.only,
                  .overwrite = command.overwrite,
                  .card = command.card,
                  .kept = command.last ? KeptCheckpoint::Last : KeptCheckpoint::Best,
                  .report_note = log_warning});
  if (command.format.empty()) {
    std::printf("wrote the card of step %lld in %s to %s; fill in its licence\n",
                static_cast<long long>(exported.step), exported.checkpoint.c_str(),
                command.out.c_str());
    return kDone;
  }
  std::printf("%s of step %lld in %s is now in %s (%s)\n",
              exported.is_averaged ? "the average of the weights, which eval uses," : "the model",
              static_cast<long long>(exported.step), exported.checkpoint.c_str(),
              command.out.c_str(), command.format.c_str());
  if (exported.dense_bytes > 0) {
    std::printf("%s: %s; a dense file would take about %s\n", command.out.c_str(),
                readable(exported.bytes).c_str(), readable(exported.dense_bytes).c_str());
  }
  return kDone;
}

namespace {

bool says_data(const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [](const std::string& assignment) {
    return assignment.starts_with("data=") || assignment.starts_with("data.");
  });
}

void print_line(const std::string& line) { std::printf("%s\n", line.c_str()); }

// A run needs data, which weights do not contain.
int write_suggestion(const ImportCommand& command) {
  const std::string path = suggested_name(command.file);
  if (!command.out.empty()) {
    suggested_yaml(command.file, [](const std::string&) {});  // a file that cannot be read first
    throw ConfigError(
        fmt::format("'{}' does not contain its data: give it with --set data.KEY=VALUE, or run "
                    "without --out, which writes a configuration to {}",
                    command.file, path));
  }
  const std::string yaml = suggested_yaml(command.file, print_line);
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) {
    throw StateError(
        fmt::format("'{}' already exists; move it away, or give it as --config", path));
  }
  write_file_atomically(path, yaml);
  std::printf(
      "wrote %s: fill in the data, check the guessed values, then run `lacuna import %s --config "
      "%s --out RUN`\n",
      path.c_str(), command.file.c_str(), path.c_str());
  return kDone;
}

}  // namespace

int run_import(const ImportCommand& command) {
  if (command.config_path.empty() && !says_data(command.overrides)) {
    return write_suggestion(command);
  }
  if (command.out.empty()) {
    throw ConfigError("give the folder for the run: lacuna import FILE … --out RUN");
  }
  // A configuration made from the file is described by the output, a given one by notes.
  const bool is_given = !command.config_path.empty();
  const ImportedRun imported =
      import_weights({.file = command.file,
                      .config = {.path = command.config_path, .overrides = command.overrides},
                      .run_dir = command.out,
                      .find_pattern = command.find_pattern,
                      .report_line = is_given ? ReportLine(print_note) : ReportLine(print_line)});
  for (const std::string& note : imported.notes) std::printf("%s\n", note.c_str());
  std::printf("%s: %lld parameters, %lld of them within the masks, from %s\n",
              imported.checkpoint.c_str(), static_cast<long long>(imported.numel),
              static_cast<long long>(imported.nnz), command.file.c_str());
  return kDone;
}

}  // namespace lacuna
