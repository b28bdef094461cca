// The program's commands: what each does once the command line is read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/prune_run.h"
#include "lacuna/framework/program/actions/quantize_run.h"
#include "lacuna/framework/program/actions/shrink_run.h"
#include "lacuna/framework/program/actions/sweep_runs.h"

namespace CLI {
class App;
}

namespace lacuna {

enum ExitCode {
  kDone = 0,
  kRunError = 1,
  kUsageError = 2,
  kHungUp = 129,  // these are 128 and the signal's number
  kInterrupted = 130,
  kTerminated = 143,
};

struct TrainCommand {
  std::string config_path;             ///< may be empty with --resume and --run-dir
  std::vector<std::string> overrides;  ///< "path=value" of each --set
  std::optional<std::string> run_dir;  ///< absent: the configuration's
  bool resume = false;
  std::optional<std::string> threads;  ///< short for --set train.threads=…
  std::optional<std::string> seed;     ///< short for --set train.seed=…
  std::optional<std::string>
      init_from;      ///< what model.init_from names; absent: the configuration's
  bool last = false;  ///< with init_from: a run's last checkpoint, not the best
  /// With resume: the optimizer may be changed, which is recorded, and what data or teacher are now
  /// is taken where they have changed.
  bool change = false;
  bool quiet = false;        ///< the result alone, warnings and errors
  bool verbose = false;      ///< on the console too what otherwise only the log file holds
  int64_t verify_steps = 0;  ///< steps to compare with a run in layout masked; 0: none
  bool profile = false;      ///< the time of layers, as a table and in the run folder
};

struct PlanCommand {
  std::string config_path;
  std::vector<std::string> overrides;
  bool json = false;
};

struct PruneCommand : PruneRequest {
  bool json = false;
};

struct ShrinkCommand : ShrinkRequest {
  bool json = false;
};

struct QuantizeCommand : QuantizeRequest {
  bool json = false;
};

struct EvalCommand {
  std::string checkpoint;
  bool last = false;  ///< of a run folder the last checkpoint, even where the best is kept
  std::vector<std::string> overrides;
  bool data_changed = false;  ///< evaluates even if the data has changed since training
  bool json = false;
};

struct PredictCommand {
  std::string checkpoint;
  bool last = false;  ///< as of EvalCommand
  std::vector<std::string> inputs;
  std::string out;
  bool overwrite = false;  ///< replaces a file at `out` that is no table
  std::optional<int64_t> threads;
};

struct GenerateCommand {
  std::string checkpoint;
  bool last = false;                  ///< as of EvalCommand
  std::optional<std::string> prompt;  ///< none: begin a new line or sentence
  int64_t tokens = 200;
  double temperature = 1.0;
  int64_t top_k = 0;
  int64_t seed = 0;
  bool unk = false;  ///< whether [UNK] may be drawn
  std::optional<int64_t> threads;
};

struct ExportCommand {
  std::string checkpoint;
  bool last = false;  ///< as of EvalCommand
  std::string format;
  std::string out;
  bool masks = false;
  bool sparse = false;
  std::string only;  ///< of a quantized run: int8 or float32
  bool overwrite = false;
  bool card = false;  ///< a model card, as a file or in the folder of the format hf
};

struct ImportCommand {
  std::string file;
  std::string config_path;
  std::string out;
  std::vector<std::string> overrides;
  bool find_pattern = false;
};

struct InspectCommand {
  std::string checkpoint;
  bool last = false;  ///< as of EvalCommand
  bool json = false;
};

struct ReportCommand {
  std::vector<std::string> runs;
  std::string out = "report.html";
  bool overwrite = false;  ///< replaces a file at `out` that is no page
};

struct CompareCommand {
  std::vector<std::string> runs;
  std::string by;  ///< "step" or "seconds": as the runs were when each had as many; empty: the end
  bool json = false;
  bool csv = false;
};

using SweepCommand = SweepRequest;

/// A line on the standard error output.
void print_note(const std::string& line);
/// Warns if the processor has an instruction set that this build has no kernels for.
void warn_about_missing_kernels();
/// Prints it.
void print_json(const Config& report);

// Each returns an exit code or throws an Error.
int run_train(const TrainCommand& command);
int run_plan(const PlanCommand& command);
int run_prune(const PruneCommand& command);
int run_shrink(const ShrinkCommand& command);
int run_quantize(const QuantizeCommand& command);
int run_eval(const EvalCommand& command);
int run_predict(const PredictCommand& command);
int run_generate(const GenerateCommand& command);
int run_export(const ExportCommand& command);
int run_import(const ImportCommand& command);
int run_inspect(const InspectCommand& command);
int run_report(const ReportCommand& command);
int run_compare(const CompareCommand& command);
int run_sweep(const SweepCommand& command);
/// The kinds of things that a configuration can name, such as "layers".
const std::vector<std::string>& listed_kinds();
/// `what`: one of them.
int run_list(const std::string& what);
int run_info(bool json);

}  // namespace lacuna
