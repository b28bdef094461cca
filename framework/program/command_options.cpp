#include "lacuna/framework/program/command_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/inference/generation.hpp"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/program/actions/shrink_run.h"
#include "lacuna/framework/program/command_line/number_checks.hpp"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {
namespace {

constexpr int64_t kMostCounted = 1'000'000'000;  // steps, tokens: more than there ever are
// What prune and shrink read.
constexpr char kWithForeign[] =
    "Checkpoint file, run folder, or another tool's weights (with CONFIG)";

// What several commands have is called the same in all of them.
void add_last(CLI::App& command, bool& last) {
  command.add_flag("--last", last, "Use a run's last checkpoint, even if its best one is kept");
}

void add_checkpoint(CLI::App& command, std::string& checkpoint,
                    const char* about = "Checkpoint file or run folder") {
  command.add_option("checkpoint", checkpoint, about)->required();
}
void add_checkpoint(CLI::App& command, std::string& checkpoint, bool& last) {
  add_checkpoint(command, checkpoint);
  add_last(command, last);
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "Print JSON"); }

void add_config(CLI::App& command, std::string& path,
                const char* about = "YAML file (docs/reference/config.md)") {
  command.add_option("config", path, about)->type_name("CONFIG")->required();
}

void add_set(CLI::App& command, std::vector<std::string>& overrides,
             const char* about =
                 "Change a value of the configuration, as in train.epochs=5 or, in a list, "
                 "model.1.out_features=500") {
  command.add_option("--set", overrides, about)->type_name("PATH=VALUE")->allow_extra_args(false);
}

// What CLI11's own checks of ranges do not name is the range.
CLI::Validator whole_number(const std::string& what, int64_t least, int64_t most) {
  return {[=](std::string& text) { return whole_number_error(text, what, least, most); }, ""};
}

constexpr const char* kThreads = "Threads to use (default: train.threads; 0: all cores)";

// Short for --set train.threads=N.
void add_threads(CLI::App& command, std::vector<std::string>& overrides) {
  const auto set = [&](const std::string& n) { overrides.push_back("train.threads=" + n); };
  command.add_option_function<std::string>("--threads", set, kThreads)->type_name("N");
}
void add_threads(CLI::App& command, std::optional<std::string>& threads) {
  command.add_option("--threads", threads, kThreads)->type_name("N");
}
void add_threads(CLI::App& command, std::optional<int64_t>& threads) {
  command.add_option("--threads", threads, "Threads to use (default: all cores)")
      ->type_name("N")
      ->transform(whole_number("a number of threads", 1, 100'000));
}

// The folder for a run or for runs; or the file to write.
template <class Path>
CLI::Option* add_run_dir(CLI::App& command, Path& path, const char* about) {
  return command.add_option("--run-dir,--out", path, about)->type_name("DIR");
}
CLI::Option* add_out(CLI::App& command, std::string& path, const char* about,
                     const char* type = "FILE") {
  return command.add_option("--out,--run-dir", path, about)->type_name(type);
}

void add_overwrite(CLI::App& command, bool& overwrite,
                   const char* about = "Replace an existing file") {
  command.add_flag("--overwrite", overwrite, about);
}

void add_train(CLI::App& app, Action& action) {
  static TrainCommand c;
  CLI::App* command = app.add_subcommand("train", "Train the model of a configuration");
  command->add_option("config", c.config_path, "YAML file (docs/reference/config.md)")
      ->type_name("CONFIG");
  add_set(*command, c.overrides);
  add_run_dir(*command, c.run_dir, "Folder for the results");
  command
      ->add_option("--init-from", c.init_from,
                   "Start from the weights of a run folder, a checkpoint, or another tool's file")
      ->type_name("RUN");
  command->add_flag("--last", c.last,
                    "With --init-from: use a run's last checkpoint, even if its best one is kept");
  command->add_flag("--resume", c.resume, "Continue the run in the run folder");
  command->add_flag(
      "--change", c.change,
      "With --resume: accept a changed optimizer (--set), changed data or a changed teacher");
  add_threads(*command, c.threads);
  command->add_option("--seed", c.seed, "Seed of all random numbers; short for --set train.seed=N")
      ->type_name("N");
  command
      ->add_option("--verify", c.verify_steps,
                   "Compare the first N steps with a run in layout masked")
      ->type_name("N")
      ->transform(whole_number("a number of steps", 1, kMostCounted));
  command->add_flag("--profile", c.profile, "Measure the time of each layer and kind of work");
  CLI::Option* quiet =
      command->add_flag("--quiet", c.quiet, "Print only the result, warnings and errors");
  command->add_flag("-v,--verbose", c.verbose, "Print everything that the log file contains")
      ->excludes(quiet);
  command->callback([&action] { action = [] { return run_train(c); }; });
}

void add_plan(CLI::App& app, Action& action) {
  static PlanCommand c;
  CLI::App* command = app.add_subcommand(
      "plan", "Show layers, densities and cost of a configuration, without training");
  add_config(*command, c.config_path);
  add_set(*command, c.overrides);
  add_threads(*command, c.overrides);
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_plan(c); }; });
}

void add_prune(CLI::App& app, Action& action) {
  static PruneCommand c;
  CLI::App* command =
      app.add_subcommand("prune", "Prune a trained model in one shot (docs/guides/pruning.md)");
  add_checkpoint(*command, c.checkpoint, kWithForeign);
  command
      ->add_option("config", c.config_path,
                   "YAML file with the section sparsity; its other sections replace the run's")
      ->type_name("CONFIG");
  command->add_option("--sparsity", c.sparsity, "Fraction of zeros, instead of CONFIG's")
      ->type_name("S");
  command->add_option("--method", c.method, join(prune_methods(), ", ") + " (default: admm)")
      ->type_name("METHOD");
  add_run_dir(*command, c.run_dir, "Folder for the results")->required();
  add_set(*command, c.overrides);
  add_threads(*command, c.threads);
  add_last(*command, c.last);
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_prune(c); }; });
}

void add_shrink(CLI::App& app, Action& action) {
  static ShrinkCommand c;
  CLI::App* command = app.add_subcommand(
      "shrink", "Remove neurons, channels and heads of a trained model (docs/guides/shrinking.md)");
  add_checkpoint(*command, c.checkpoint, kWithForeign);
  command
      ->add_option("config", c.config_path,
                   "YAML file with the section shrink; its other sections replace the run's")
      ->type_name("CONFIG");
  command->add_option("--method", c.method, join(shrink_methods(), ", ") + " (default: magnitude)")
      ->type_name("METHOD");
  command
      ->add_option("--to", c.to,
                   "Fraction that remains of flops, parameters or time, as in flops=0.5")
      ->type_name("BUDGET");
  command
      ->add_option("--round-to", c.round_to,
                   "Reduce channels and neurons to multiples of N; auto (default): multiples that "
                   "suit the kernels")
      ->type_name("N");
  add_run_dir(*command, c.run_dir, "Folder for the results")->required();
  add_set(*command, c.overrides);
  add_threads(*command, c.threads);
  add_last(*command, c.last);
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_shrink(c); }; });
}

void add_quantize(CLI::App& app, Action& action) {
  static QuantizeCommand c;
  CLI::App* command = app.add_subcommand(
      "quantize", "Convert a trained model to int8 (docs/guides/quantization.md)");
  add_checkpoint(*command, c.checkpoint);
  command->add_option("config", c.config_path, "YAML file with the section quantize")
      ->type_name("CONFIG");
  add_run_dir(*command, c.run_dir, "Folder for the results")->required();
  add_set(*command, c.overrides,
          "Change a key of the section quantize, as in quantize.weights.clip=max");
  add_threads(*command, c.threads);
  add_last(*command, c.last);
  command->add_option("--only", c.only, "Do not store the float32 weights of quantized layers")
      ->type_name("int8");
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_quantize(c); }; });
}

void add_eval(CLI::App& app, Action& action) {
  static EvalCommand c;
  CLI::App* command =
      app.add_subcommand("eval", "Evaluate a checkpoint on its validation and test data");
  add_checkpoint(*command, c.checkpoint, c.last);
  add_set(*command, c.overrides, "Change a value of the sections data, loss and train");
  add_threads(*command, c.overrides);
  command->add_flag("--data-changed", c.data_changed,
                    "Evaluate even if the data has changed since training");
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_eval(c); }; });
}

void add_predict(CLI::App& app, Action& action) {
  static PredictCommand c;
  CLI::App* command = app.add_subcommand("predict", "Write predictions for new inputs");
  add_checkpoint(*command, c.checkpoint, c.last);
  command
      ->add_option("input", c.inputs,
                   "Tables, arrays, texts, images or folders of images; - for the standard input "
                   "(docs/reference/commands.md)")
      ->required();
  add_out(*command, c.out, "CSV file to write; - for the standard output")->required();
  add_overwrite(*command, c.overwrite);
  add_threads(*command, c.threads);
  command->callback([&action] { action = [] { return run_predict(c); }; });
}

void add_generate(CLI::App& app, Action& action) {
  static GenerateCommand c;
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a language model");
  add_checkpoint(*command, c.checkpoint, c.last);
  command->add_option("--prompt", c.prompt,
                      "Text to continue (default: begin a new line or sentence)");
  command->add_option("--tokens", c.tokens, "Number of tokens to generate")
      ->type_name("N")
      ->transform(whole_number("a number of tokens", 0, kMostGeneratedTokens))
      ->capture_default_str();
  command
      ->add_option("--temperature", c.temperature,
                   "Divisor of the logits; 0: always the most likely token")
      ->type_name("T")
      ->check(finite_number_error)
      ->capture_default_str();
  command->add_flag("--unk", c.unk, "Also draw [UNK]");
  command->add_option("--top-k", c.top_k, "Draw from the K most likely tokens (default: all)")
      ->type_name("K")
      ->transform(whole_number("a number of tokens", 0, kMostCounted));
  command->add_option("--seed", c.seed, "Seed of the random draws")
      ->type_name("S")
      ->transform(whole_number("a seed", 0, 9'200'000'000'000'000'000))
      ->capture_default_str();
  add_threads(*command, c.threads);
  command->callback([&action] { action = [] { return run_generate(c); }; });
}

void add_inspect(CLI::App& app, Action& action) {
  static InspectCommand c;
  CLI::App* command = app.add_subcommand("inspect", "Show the contents of a checkpoint");
  add_checkpoint(*command, c.checkpoint, c.last);
  add_json(*command, c.json);
  command->callback([&action] { action = [] { return run_inspect(c); }; });
}

void add_export(CLI::App& app, Action& action) {
  static ExportCommand c;
  CLI::App* command = app.add_subcommand("export", "Write a run's weights for other tools");
  std::vector<std::string> formats;
  for (const auto& [name, about] : export_formats()) formats.push_back(name);
  command->add_option("run", c.checkpoint, "Run folder or checkpoint file")->required();
  command
      ->add_option("--format", c.format, join(formats, ", ") + "; required unless --card is given")
      ->type_name("FORMAT");
  command->add_flag("--card", c.card,
                    "Write a model card in Markdown; with --format hf into its folder");
  add_out(*command, c.out, "File to write; a folder for hf", "PATH")->required();
  add_last(*command, c.last);
  command->add_flag("--masks", c.masks, "Also write masks, as NAME_mask");
  command->add_flag("--sparse", c.sparse,
                    "Store only the nonzeros of sparse weights (safetensors, onnx)");
  command->add_option("--only", c.only, "Weights of a quantized run to write: int8 or float32")
      ->type_name("TYPE");
  add_overwrite(*command, c.overwrite, "Replace an existing file or folder");
  command->callback([&action] { action = [] { return run_export(c); }; });
}

void add_import(CLI::App& app, Action& action) {
  static ImportCommand c;
  CLI::App* command = app.add_subcommand("import", "Make a run from another tool's weights");
  command
      ->add_option("file", c.file,
                   "A .safetensors, .npz, .npy or .onnx file, or a Hugging Face folder")
      ->required();
  command
      ->add_option("--config", c.config_path,
                   "YAML file of the run; without it, the model is inferred from names and shapes")
      ->type_name("CONFIG");
  add_run_dir(*command, c.out,
              "Folder for the run; without --config and --out, only a configuration FILE.yaml is "
              "written");
  add_threads(*command, c.overrides);
  add_set(*command, c.overrides);
  command->add_flag("--find-pattern", c.find_pattern,
                    "Make masks of zeros, and report their patterns");
  command->callback([&action] { action = [] { return run_import(c); }; });
}

void add_report_and_compare(CLI::App& app, Action& action) {
  static ReportCommand r;
  CLI::App* report =
      app.add_subcommand("report", "Write a page about runs: curves, layers, masks, results");
  report->add_option("run", r.runs, "Run folders")->type_name("RUN")->required();
  add_out(*report, r.out, "HTML file to write")->capture_default_str();
  add_overwrite(*report, r.overwrite);
  report->callback([&action] { action = [] { return run_report(r); }; });
  static CompareCommand c;
  CLI::App* compare =
      app.add_subcommand("compare", "Show the results of runs as a table, the best first");
  compare->add_option("run", c.runs, "Run folders")->type_name("RUN")->required();
  compare->add_option("--by", c.by, "Compare at equal steps or seconds of training")
      ->type_name("step|seconds")
      ->check(CLI::IsMember({"step", "seconds"}));
  add_json(*compare, c.json);
  compare->add_flag("--csv", c.csv, "Print CSV");
  compare->callback([&action] { action = [] { return run_compare(c); }; });
}

void add_sweep(CLI::App& app, Action& action) {
  static SweepCommand c;
  CLI::App* command = app.add_subcommand("sweep", "Train one run for each combination of values");
  add_config(*command, c.config_path);
  command
      ->add_option("--over", c.over,
                   "Values of a key: path=value,value,...; a range: path=log:LOW..HIGH; or a YAML "
                   "file of named settings")
      ->type_name("PATH=VALUES|FILE")
      ->allow_extra_args(false);
  add_set(*command, c.overrides, "Change a value in all runs: path=value");
  command
      ->add_option("--seeds", c.seeds, "Number of runs of each combination, with different seeds")
      ->type_name("N")
      ->transform(whole_number("a number of seeds", 1, 100'000))
      ->capture_default_str();
  CLI::Option* random =
      command->add_option("--random", c.random, "Train N random combinations instead of all")
          ->type_name("N")
          ->transform(whole_number("a number of combinations", 1, 100'000));
  command->add_option("--random-seed", c.random_seed, "Seed of the random combinations")
      ->needs(random)
      ->type_name("S")
      ->transform(whole_number("a seed", 0, 9'200'000'000'000'000'000))
      ->capture_default_str();
  command->add_option("--jobs", c.jobs, "Number of runs at the same time")
      ->type_name("N")
      ->transform(whole_number("a number of runs at the same time", 1, 100'000))
      ->capture_default_str();
  add_run_dir(*command, c.run_dir, "Folder for the folders of the runs")->required();
  add_threads(*command, c.overrides);
  command->callback([&action] { action = [] { return run_sweep(c); }; });
}

void add_list_and_info(CLI::App& app, Action& action) {
  static std::string what;
  static bool json = false;
  CLI::App* list = app.add_subcommand("list", "List the names that a configuration can use");
  list->add_option("what", what,
                   "algorithms, sparsifiers, layouts, layers, presets, optimizers, schedules or "
                   "datasets")
      ->required();
  list->callback([&action] { action = [] { return run_list(what); }; });
  CLI::App* info = app.add_subcommand("info", "Show version, threads and instruction set");
  add_json(*info, json);
  info->callback([&action] { action = [] { return run_info(json); }; });
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  add_train(app, action);
  add_plan(app, action);
  add_prune(app, action);
  add_shrink(app, action);
  add_quantize(app, action);
  add_eval(app, action);
  add_predict(app, action);
  add_generate(app, action);
  add_inspect(app, action);
  add_export(app, action);
  add_import(app, action);
  add_report_and_compare(app, action);
  add_sweep(app, action);
  add_list_and_info(app, action);
}

}  // namespace lacuna
