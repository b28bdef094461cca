#include "lacuna/framework/program/command_line/completion.hpp"

#include <algorithm>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

using Texts = std::vector<std::string>;

void replace_all(std::string& text, const std::string& mark, const std::string& value) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), value);
    at += value.size();
  }
}

// In single quotes, for bash and zsh; `escape` stands for a quote inside of them.
std::string quoted(const std::string& text, const std::string& escape = "'\\''") {
  std::string inside = text;
  replace_all(inside, "'", escape);
  return "'" + inside + "'";
}
std::string quoted_for_fish(const std::string& text) {
  std::string inside = text;
  replace_all(inside, "\\", "\\\\");
  return quoted(inside, "\\'");
}

bool is_folder(const OptionHelp& option) { return option.value == "DIR"; }
bool is_file(const OptionHelp& option) {
  return option.value == "FILE" || option.value == "PATH" || option.value == "CONFIG" ||
         option.value == "RUN" || option.value == "PAGE";
}

Texts command_names(const ProgramHelp& program) {
  Texts names;
  for (const CommandHelp& command : program.commands) names.push_back(command.name);
  return names;
}

Texts option_names(const CommandHelp& command) {
  Texts names;
  for (const OptionHelp& option : command.options) {
    if (option.is_positional()) continue;
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

// The pattern of a case for an option's value: "train:--run-dir|train:--out".
std::string value_case(const CommandHelp& command, const OptionHelp& option) {
  Texts cases;
  for (const std::string& name : option.names) cases.push_back(command.name + ":" + name);
  return join(cases, "|");
}

// Cases of bash and zsh, a line for each that is not empty: `line(command, option)`.
template <class Line>
std::string value_cases(const ProgramHelp& program, const Line& line) {
  std::string text;
  for (const CommandHelp& command : program.commands) {
    for (const OptionHelp& option : command.options) {
      if (option.is_positional()) continue;
      const std::string todo = line(option);
      if (!todo.empty()) text += "    " + value_case(command, option) + ") " + todo + " ;;\n";
    }
  }
  return text;
}

template <class Line>
std::string positional_cases(const ProgramHelp& program, const Line& line) {
  std::string text;
  for (const CommandHelp& command : program.commands) {
    for (const OptionHelp& option : command.options) {
      if (!option.is_positional() || option.choices.empty()) continue;
      text += "    " + command.name + ") " + line(option) + " ;;\n";
      break;
    }
  }
  return text;
}

std::string key_values(const ProgramHelp& program) {
  std::string text;
  for (const KeyHelp& key : program.keys) {
    if (key.choices.empty()) continue;
    text += "    " + key.path + ") values=" + quoted(join(key.choices, " ")) + " ;;\n";
  }
  return text;
}

constexpr const char* kBash =
    R"(# Completes lacuna's command lines in bash; made by `lacuna completion bash`.
_lacuna_key() {  # of --set: a key, or behind its = a value
  local values=
  if [[ $1 != *=* ]]; then
    COMPREPLY=($(compgen -S = -W @KEYS@ -- "$1"))
    compopt -o nospace 2>/dev/null
    return
  fi
  case ${1%%=*} in
@KEY_VALUES@  esac
  COMPREPLY=($(compgen -W "$values" -- "${1#*=}"))
  # Where = ends a word, as it does by default, the shell puts back the key itself.
  [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/${1%%=*}=}")
}

_lacuna() {
  local line=${COMP_LINE:0:COMP_POINT} current= command=
  local -a before
  read -ra before <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${before[-1]}
    unset 'before[-1]'
  fi
  COMPREPLY=()
  if ((${#before[@]} < 2)); then
    COMPREPLY=($(compgen -W @COMMANDS@ -- "$current"))
    return
  fi
  command=${before[1]}
  case $command:${before[-1]} in
@VALUES@  esac
  if [[ $current == -* ]]; then
    case $command in
@OPTIONS@    esac
    return
  fi
  case $command in
@POSITIONALS@  esac
}
complete -o default -F _lacuna lacuna
)";

std::string for_bash(const ProgramHelp& program) {
  const auto words = [](const Texts& list, const std::string& of = "$current") {
    return "COMPREPLY=($(compgen -W " + quoted(join(list, " ")) + " -- \"" + of + "\"))";
  };
  std::string options;
  for (const CommandHelp& command : program.commands) {
    options += "    " + command.name + ") " + words(option_names(command)) + " ;;\n";
  }
  Texts keys;
  for (const KeyHelp& key : program.keys) keys.push_back(key.path);
  std::string text = kBash;
  replace_all(text, "@KEYS@", quoted(join(keys, " ")));
  replace_all(text, "@KEY_VALUES@", key_values(program));
  Texts first = command_names(program);
  first.insert(first.end(), {"--help", "--version"});
  replace_all(text, "@COMMANDS@", quoted(join(first, " ")));
  replace_all(text, "@VALUES@", value_cases(program, [&](const OptionHelp& option) -> std::string {
                if (option.takes_key()) return "_lacuna_key \"$current\"; return";
                if (!option.choices.empty()) return words(option.choices) + "; return";
                if (!is_folder(option)) return option.value.empty() ? "" : "return";
                return "mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); compopt -o filenames "
                       "2>/dev/null; return";
              }));
  replace_all(text, "@OPTIONS@", options);
  replace_all(text, "@POSITIONALS@", positional_cases(program, [&](const OptionHelp& option) {
                return words(option.choices);
              }));
  return text;
}

constexpr const char* kZsh = R"(#compdef lacuna
# Completes lacuna's command lines in zsh; made by `lacuna completion zsh`.
_lacuna_key() {  # of --set: a key, or behind its = a value
  local values=
  local -a keys
  if [[ $1 != *=* ]]; then
    keys=(
@KEYS@    )
    _describe -t keys key keys -S =
    return
  fi
  case ${1%%=*} in
@KEY_VALUES@  esac
  compset -P '*='
  compadd -- ${=values}
}

_lacuna() {
  local current=$words[CURRENT] command=$words[2]
  local -a list
  if ((CURRENT == 2)); then
    list=(
@COMMANDS@    )
    _describe -t commands command list
    return
  fi
  case $command:$words[CURRENT-1] in
@VALUES@  esac
  if [[ $current == -* ]]; then
    case $command in
@OPTIONS@    esac
    _describe -t options option list
    return
  fi
  case $command in
@POSITIONALS@    *) _files ;;
  esac
}

if [[ $funcstack[1] == _lacuna ]]; then
  _lacuna "$@"
else
  compdef _lacuna lacuna
fi
)";

std::string for_zsh(const ProgramHelp& program) {
  const auto described = [](const std::string& name, const std::string& about) {
    return quoted(name + ":" + about);
  };
  const auto words = [](const Texts& list) { return "compadd -- " + join(list, " "); };
  std::string keys, commands, options;
  for (const KeyHelp& key : program.keys) keys += "      " + described(key.path, key.about) + "\n";
  for (const CommandHelp& command : program.commands) {
    commands += "      " + described(command.name, command.about) + "\n";
    options += "    " + command.name + ") list=(";
    for (const OptionHelp& option : command.options) {
      if (option.is_positional()) continue;
      for (const std::string& name : option.names) options += described(name, option.about) + " ";
    }
    options += ") ;;\n";
  }
  std::string text = kZsh;
  replace_all(text, "@KEYS@", keys);
  replace_all(text, "@KEY_VALUES@", key_values(program));
  replace_all(text, "@COMMANDS@", commands);
  replace_all(text, "@VALUES@", value_cases(program, [&](const OptionHelp& option) -> std::string {
                if (option.takes_key()) return "_lacuna_key \"$current\"; return";
                if (!option.choices.empty()) return words(option.choices) + "; return";
                if (is_folder(option)) return "_files -/; return";
                if (is_file(option)) return "_files; return";
                return option.value.empty() ? "" : "return";
              }));
  replace_all(text, "@OPTIONS@", options);
  replace_all(text, "@POSITIONALS@", positional_cases(program, [&](const OptionHelp& option) {
                return words(option.choices);
              }));
  return text;
}

std::string fish_option(const CommandHelp& command, const OptionHelp& option) {
  std::string text = "complete -c lacuna -n '__fish_seen_subcommand_from " + command.name + "'";
  for (const std::string& name : option.names) {
    if (option.is_positional()) continue;
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.takes_key()) {
    text += " -x -a '(__lacuna_keys)'";
  } else if (!option.choices.empty()) {
    text += " -x -a " + quoted_for_fish(join(option.choices, " "));
  } else if (is_folder(option)) {
    text += " -x -a '(__fish_complete_directories)'";
  } else if (is_file(option)) {
    text += " -r -F";
  } else if (!option.value.empty()) {
    text += " -x";
  }
  return text + " -d " + quoted_for_fish(option.about) + "\n";
}

std::string for_fish(const ProgramHelp& program) {
  std::string text =
      "# Completes lacuna's command lines in fish; made by `lacuna completion fish`.\n"
      "function __lacuna_keys\n"
      "  switch (commandline -ct)\n";
  for (const KeyHelp& key : program.keys) {
    if (key.choices.empty()) continue;
    text += "    case '" + key.path + "=*'\n      printf '%s\\n'";
    for (const std::string& value : key.choices) text += " " + key.path + "=" + value;
    text += "\n";
  }
  text += "    case '*'\n      printf '%s=\\t%s\\n'";
  for (const KeyHelp& key : program.keys) {
    text += " \\\n        " + key.path + " " + quoted_for_fish(key.about);
  }
  text += "\n  end\nend\n\n";
  for (const CommandHelp& command : program.commands) {
    text += "complete -c lacuna -n __fish_use_subcommand -x -a " + command.name + " -d " +
            quoted_for_fish(command.about) + "\n";
  }
  for (const CommandHelp& command : program.commands) {
    for (const OptionHelp& option : command.options) {
      if (!option.is_positional() || !option.choices.empty()) text += fish_option(command, option);
    }
  }
  return text;
}

}  // namespace

const std::vector<std::string>& completed_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const std::string& shell, const ProgramHelp& program) {
  if (shell == "bash") return for_bash(program);
  if (shell == "zsh") return for_zsh(program);
  if (shell == "fish") return for_fish(program);
  throw ConfigError("completion: unknown shell '" + shell + "'; " +
                    suggest_name(shell, completed_shells()));
}

}  // namespace lacuna
