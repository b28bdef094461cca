// `lacuna shrink`: a trained model made smaller, as a run that training can go on from.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/program/actions/shrink_run.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_shrink(const ShrinkCommand& command) {
  ShrinkRequest request = command;
  request.tell = print_note;
  const ShrunkRun shrunk = shrink_run(request);
  if (command.json) {
    print_json(shrunk.report);
    return kDone;
  }
  std::fputs(shrunk.text.c_str(), stdout);
  std::printf("the smaller model is in %s\n", command.run_dir.c_str());
  return kDone;
}

void add_shrink(CLI::App& app, std::function<int()>& action) {
  static ShrinkCommand c;
  CLI::App* command = app.add_subcommand(
      "shrink", "Remove neurons, channels and heads of a trained model (docs/guides/shrinking.md)");
  command->add_option("checkpoint", c.checkpoint, "Checkpoint file or run folder")->required();
  command
      ->add_option("config", c.config_path,
                   "YAML file with the section shrink; others take the place of the run's")
      ->type_name("CONFIG");
  command->add_option("--method", c.method, join(shrink_methods(), ", ") + " (default: magnitude)")
      ->type_name("METHOD");
  command->add_option("--to", c.to, "What is left: flops, parameters or time, as in flops=0.5")
      ->type_name("BUDGET");
  command->add_option("--run-dir,--out", c.run_dir, "Folder for the results")
      ->type_name("DIR")
      ->required();
  command->add_option("--set", c.overrides, "Change a value: path=value, lists by index")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command->add_option("--threads", c.threads, "Threads to use (default: all cores)")
      ->type_name("N");
  command->add_flag("--last", c.last, "Use a run's last checkpoint, even if its best one is kept");
  command->add_flag("--json", c.json, "Print JSON");
  command->callback([&action] { action = [] { return run_shrink(c); }; });
}

}  // namespace lacuna
