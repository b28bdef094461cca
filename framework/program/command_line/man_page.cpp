#include "lacuna/framework/program/command_line/man_page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

// A text as roff shows it: hyphens that can be copied, and no requests at a line's begin.
std::string roff(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\\') {
      shown += "\\e";
    } else if (c == '-') {
      shown += "\\-";
    } else {
      shown += c == '\n' ? ' ' : c;
    }
  }
  return shown.starts_with('.') || shown.starts_with('\'') ? "\\&" + shown : shown;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string value_text(const OptionHelp& option) {
  const bool is_text = option.value == "TEXT" || option.value.empty();
  const std::string name = is_text ? upper(option.names.front()) : option.value;
  const size_t first = name.find_first_not_of('-');
  return "\\fI" + roff(name.substr(first)) + "\\fR";
}

// "lacuna eval CHECKPOINT [OPTIONS]".
std::string use_of(const CommandHelp& command) {
  std::string text = bold("lacuna " + command.name);
  for (const OptionHelp& option : command.options) {
    if (!option.is_positional()) continue;
    const std::string value = value_text(option) + (option.is_repeated ? "..." : "");
    text += " " + (option.is_required ? value : "[" + value + "]");
  }
  return text + " [\\fIOPTIONS\\fR]";
}

std::string option_text(const OptionHelp& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string head = join(names, ", ");
  if (!option.value.empty()) head += " " + value_text(option);
  return ".TP\n" + head + "\n" + roff(option.about) + (option.is_required ? " (required)\n" : "\n");
}

std::string command_text(const CommandHelp& command) {
  std::string text = ".SS " + roff(command.name) + "\n" + use_of(command) + "\n.PP\n" +
                     roff(command.about) + ".\n";
  for (const OptionHelp& option : command.options) {
    if (!option.is_positional() && option.names.back() != "--help") text += option_text(option);
  }
  return text;
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
An error of the run: data, a checkpoint, a loss that is not finite, a full disk.
.TP
2
Wrong usage or configuration. Nothing was written.
.TP
129, 130, 143
Stopped by SIGHUP, SIGINT or SIGTERM, after writing a checkpoint.
.SH ENVIRONMENT
.TP
OMP_NUM_THREADS
Threads, unless train.threads is given.
.TP
LACUNA_INSTRUCTION_SET
Upper limit for kernels: avx512, avx-vnni, avx2, sse4, baseline, neon or reference.
.TP
LACUNA_CACHE_DIR
Folder for the cache of measured step costs.
.SH EXAMPLES
.nf
lacuna train configs/quickstart.yaml \-\-run\-dir runs/first
lacuna train configs/quickstart.yaml \-\-set sparsity.sparsity=0.95
lacuna train \-\-resume \-\-run\-dir runs/first
lacuna prune runs/first \-\-sparsity 0.8 \-\-run\-dir runs/pruned
lacuna eval runs/first
.fi
.SH SEE ALSO
The documentation that is installed with the program, in docs: docs/README.md is its index, and
docs/reference/config.md lists every key of configurations.
)";

}  // namespace

std::string man_page(const ProgramHelp& program) {
  std::string text = fmt::format(
      ".TH LACUNA 1 \"\" \"lacuna {}\" \"User Commands\"\n.SH NAME\nlacuna \\- trains sparse "
      "neural "
      "networks on CPUs\n.SH SYNOPSIS\n",
      roff(program.version));
  for (const CommandHelp& command : program.commands) text += use_of(command) + "\n.br\n";
  text +=
      ".SH DESCRIPTION\nTrains neural networks whose weights are stored and multiplied sparse. A "
      "YAML file describes a run; a run writes a folder, which is the input of the other "
      "commands.\n.SH COMMANDS\n";
  for (const CommandHelp& command : program.commands) text += command_text(command);
  text += ".SH KEYS\nKeys of configurations, for " + bold("--set") + ":\n";
  for (const KeyHelp& key : program.keys) {
    text += ".TP\n" + bold(key.path) + "\n" + (key.about.empty() ? "\\&" : roff(key.about)) + "\n";
  }
  return text + kEnd;
}

}  // namespace lacuna
