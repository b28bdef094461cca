#include "lacuna/framework/program/command_help.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/program/command_line/completion.hpp"
#include "lacuna/framework/program/command_line/man_page.hpp"
#include "lacuna/framework/program/command_line/usage_errors.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/settings/documented_keys.hpp"
#include "lacuna/framework/program/settings/keys.hpp"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Values that the parser takes as text, and the program knows.
std::vector<std::string> choices_of(const CLI::App& app, const std::string& option) {
  if (option == "list what") return listed_kinds();
  if (option == "help topic") return names_of_commands(app);
  if (option == "completion shell") return completed_shells();
  if (option == "prune --method") return prune_methods();
  if (option == "shrink --method") return shrink_methods();
  std::vector<std::string> formats;
  if (option == "export --format") {
    for (const auto& [name, about] : export_formats()) formats.push_back(name);
  }
  return formats;
}

OptionHelp describe_option(const CLI::App& app, const std::string& command,
                           const CLI::Option& option) {
  OptionHelp help{.names = {},
                  .value = option.get_items_expected_max() == 0 ? "" : option.get_type_name(),
                  .about = option.get_description(),
                  .is_required = option.get_required(),
                  .is_repeated = option.get_items_expected_max() > 1};
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  if (option.get_positional() && help.names.empty()) help.names = {option.get_name()};
  help.choices = choices_of(app, command + " " + help.names.back());
  return help;
}

CommandHelp describe_command(const CLI::App& app, const CLI::App& command) {
  CommandHelp help{command.get_name(), command.get_description(), {}};
  for (const CLI::Option* option : command.get_options()) {
    help.options.push_back(describe_option(app, help.name, *option));
  }
  return help;
}

// The documented keys, and those of datasets that a user's program has registered.
std::vector<KeyHelp> describe_keys() {
  std::vector<KeyHelp> keys;
  for (const DocumentedKey& key : documented_keys(config_reference())) {
    if (!find_key(key.path).is_measured) keys.push_back({key.path, key.about, key.choices});
  }
  for (const KeyTraits& key : config_keys()) {
    const bool is_known = std::ranges::find(keys, key.path, &KeyHelp::path) != keys.end();
    if (!is_known && key.path.starts_with("data.")) keys.push_back({key.path, "", {}});
  }
  for (KeyHelp& key : keys) {
    if (key.path == "data.type") key.choices = dataset_registry().names();
    if (key.path == "optimizer.type") key.choices = optimizer_registry().names();
    if (key.path == "sparsity.algorithm") key.choices = algorithm_registry().names();
  }
  return keys;
}

ProgramHelp describe_program(const CLI::App& app) {
  ProgramHelp program{kVersion, {}, describe_keys()};
  for (const CLI::App* command : app.get_subcommands({})) {
    program.commands.push_back(describe_command(app, *command));
  }
  return program;
}

int print_text(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return kDone;
}

int run_help(const CLI::App& app, const std::string& topic, bool is_man) {
  if (is_man) return print_text(man_page(describe_program(app)));
  const std::vector<std::string> names = names_of_commands(app);
  if (!topic.empty() && std::ranges::find(names, topic) == names.end()) {
    throw ConfigError("help: unknown command '" + topic + "'; " + suggest_name(topic, names));
  }
  if (!topic.empty()) return print_text(app.get_subcommand(topic)->help(app.get_name()));
  // By the formatter, as `app.help()` is that of the command which is being carried out: this one.
  const CLI::AppFormatMode mode = CLI::AppFormatMode::Normal;
  return print_text(app.get_formatter()->make_help(&app, app.get_name(), mode));
}

}  // namespace

// The parser would only report that a subcommand is required.
void require_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string help = " (lacuna --help shows more)";
  if (argc < 2) throw ConfigError("a command is missing; commands: " + join(names, ", ") + help);
  const std::string given = argv[1];
  const bool is_option = given == "-h" || given == "--help" || given == "--version";
  if (is_option || std::ranges::find(names, given) != names.end()) return;
  throw ConfigError("unknown command '" + given + "'; " + suggest_name(given, names) + help);
}

// What is no training has no work to share: each process would do all of it, into the same files.
void require_one_process(const CLI::App& app) {
  if (launched_processes() <= 1 || app.got_subcommand("train")) return;
  for (const char* harmless : {"info", "help", "version", "completion"}) {  // of each node
    if (app.got_subcommand(harmless)) return;
  }
  for (const CLI::App* command : app.get_subcommands()) {
    throw ConfigError(
        fmt::format("lacuna {} is for one process, and the launcher has started {}; only train "
                    "uses several processes: start this command without a launcher (mpirun, srun)",
                    command->get_name(), launched_processes()));
  }
}

std::string usage_error_of(const CLI::App& app, const CLI::ParseError& error) {
  if (app.get_subcommands().empty()) return error.what();
  const CLI::App& command = *app.get_subcommands().front();
  CommandUse use{.command = command.get_name(), .options = {}, .unknown = app.remaining(true)};
  for (const CLI::Option* option : command.get_options()) {
    const bool is_flag = option->get_items_expected_max() == 0;
    use.options.push_back({.name = option->get_name(),
                           .value = is_flag ? "" : option->get_type_name(),
                           .about = option->get_description(),
                           .is_required = option->get_required(),
                           .given = option->results()});
  }
  return usage_error(use, error.get_name(), error.what());
}

void add_help_commands(CLI::App& app, std::function<int()>& action) {
  static std::string topic, shell;
  static bool is_man = false;
  CLI::App* help = app.add_subcommand("help", "Show the purpose and options of a command");
  help->add_option("topic", topic, "Command (default: list all commands)")->type_name("COMMAND");
  help->add_flag("--man", is_man, "Print the manual page in roff");
  help->callback([&app, &action] { action = [&app] { return run_help(app, topic, is_man); }; });
  CLI::App* version = app.add_subcommand("version", "Show the version");
  version->callback(
      [&action] { action = [] { return print_text(std::string("lacuna ") + kVersion + "\n"); }; });
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes command lines in a shell");
  completion->add_option("shell", shell, join(completed_shells(), ", "))
      ->type_name("SHELL")
      ->required();
  completion->callback([&app, &action] {
    action = [&app] { return print_text(completion_script(shell, describe_program(app))); };
  });
}

}  // namespace lacuna
