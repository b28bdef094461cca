#include "lacuna/framework/interop/import_run.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

// The configuration as a training with these first weights would have it.
Config with_source(const Config& given, const std::string& file, const std::string& run_dir,
                   const ImportOptions& options) {
  Config config = given.clone();
  std::error_code unknown;  // a current folder that was removed
  const std::filesystem::path absolute = std::filesystem::absolute(file, unknown);
  set_init_from(config, unknown ? file : absolute.string(), "import " + file);
  if (options.find_pattern) {
    Config model = config.at("model"), source = model.at("init_from");
    if (!source.is_map()) model.set("init_from", Config::map({{"path", source}}));
    model.at("init_from").set("find_pattern", true);
  }
  config.set("run_dir", run_dir);
  return config;
}

}  // namespace

ImportedRun import_run(const std::string& file, const Config& config, const std::string& run_dir,
                       const ImportOptions& options) {
  RunFolder::require_unused(run_dir);  // before the data is read, which may take long
  const auto experiment =
      build_experiment(with_source(config, file, run_dir, options), Start::Untrained);
  ImportedRun imported{.checkpoint = {},
                       .notes = experiment->notes,
                       .numel = experiment->numel(),
                       .nnz = experiment->nnz()};
  for (const ParameterPtr& parameter : experiment->model->parameters()) {
    if (parameter->sparsified_by.empty()) continue;
    imported.notes.push_back(fmt::format("{}: {} manages it, {} of {} are nonzeros, stored as {}",
                                         parameter->name(), parameter->sparsified_by,
                                         parameter->pattern()->nnz(), parameter->numel(),
                                         parameter->pattern()->layout().name()));
  }
  FolderReplacement whole(run_dir);
  const RunFolder folder = RunFolder::create(whole.temporary_path(), experiment->config.to_yaml());
  Trainer(*experiment, folder, ProgressStyle::Lines).save_beginning();
  whole.commit();
  imported.checkpoint = find_checkpoint(run_dir).path();
  return imported;
}

}  // namespace lacuna
