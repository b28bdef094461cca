#include "lacuna/framework/program/command_line/usage_errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/familiar_names.hpp"
#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

// "CSV file to write" as it is, "Folder for the results" within a sentence.
std::string within_sentence(std::string text) {
  const auto is_upper = [&](size_t i) {
    return i < text.size() && std::isupper(static_cast<unsigned char>(text[i])) != 0;
  };
  if (is_upper(0) && !is_upper(1)) text[0] = static_cast<char>(std::tolower(text[0]));
  return text;
}

std::string help_of(const CommandUse& use) {
  return fmt::format(" (lacuna {} --help shows more)", use.command);
}

// The placeholder of its value: "FILE", or the option's name, as in "TOKENS".
std::string value_of(const CommandOption& option) {
  if (option.value != "TEXT") return option.value;
  std::string name = option.name.substr(option.name.find_first_not_of('-'));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

// "--out FILE"; of a positional argument its value's name alone.
std::string spelled(const CommandOption& option) {
  if (option.is_positional()) return value_of(option);
  return option.value.empty() ? option.name : option.name + " " + value_of(option);
}

// The one that the parser names: first of all, as values follow it, which may be other names.
const CommandOption* named_option(const CommandUse& use, const std::string& words) {
  const CommandOption* found = nullptr;
  size_t first = words.size();
  for (const CommandOption& option : use.options) {
    const size_t at = words.find(option.name);
    const bool is_longer = at == first && found != nullptr && option.name > found->name;
    if (at < first || is_longer) found = &option, first = at;
  }
  return found;
}

// Where configurations have what people look for among the options; empty for other words.
std::string key_of_word(const std::string& word) {
  static const std::vector<std::pair<std::string, std::string>> options = {
      {"sparsity", "sparsity.sparsity"},
      {"density", "sparsity.sparsity"},
      {"algorithm", "sparsity.algorithm"},
      {"distribution", "sparsity.distribution"},
      {"pattern", "sparsity.pattern"},
      {"layout", "sparsity.layout"},
      {"optimizer", "optimizer.type"},
      {"loss", "loss"},
      {"data", "data.dir"},
      {"dataset", "data.type"},
      {"max-length", "data.max_length"}};
  for (const auto& [name, key] : options) {
    if (name == word) return key;
  }
  return familiar_key(word);
}

std::string without_dashes(const std::string& name) {
  std::string plain = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(plain, '_', '-');
  return to_lower(plain);
}

// "--set sparsity.sparsity=0.9" for what is a key of configurations; empty for all else. The value
// is behind a '=', or the next argument that nothing took.
std::string as_key(const CommandUse& use, const std::string& argument) {
  const bool has_set = std::ranges::any_of(
      use.options, [](const CommandOption& option) { return option.name == "--set"; });
  if (!has_set) return "";
  const size_t sign = argument.find('=');
  const std::string plain = without_dashes(argument.substr(0, sign));
  std::string path = key_of_word(plain);
  if (plain.find('.') != std::string::npos) {  // --optimizer.lr
    path = argument.substr(0, sign).substr(argument.find_first_not_of('-'));
  }
  if (path.empty()) return "";
  std::string value = "VALUE";
  if (sign != std::string::npos) {
    value = argument.substr(sign + 1);
  } else {
    const auto place = std::ranges::find(use.unknown, argument);
    const auto next = place == use.unknown.end() ? place : place + 1;
    if (next != use.unknown.end() && !next->starts_with("--")) value = *next;
  }
  const Config given = Config::plain(value);
  if (plain == "density") {
    value = given.is_number() ? Config(1.0 - given.as<double>()).text() : "VALUE";
  }
  return path + "=" + value;
}

// The option that was meant: with a slip, or the beginning of one that is longer, or the reverse.
std::string meant_option(const std::string& given, const std::vector<std::string>& names) {
  const std::string plain = without_dashes(given);
  for (const std::string& name : names) {
    const std::string other = without_dashes(name);
    const bool is_part = plain.size() >= 3 && other.size() >= 3 &&
                         (plain.starts_with(other) || other.starts_with(plain));
    if (is_misspelling(plain, other) || is_part) return name;
  }
  return "";
}

// "CHECKPOINT INPUTS": what has no name, in order.
std::string positionals(const CommandUse& use) {
  std::vector<std::string> places;
  for (const CommandOption& option : use.options) {
    if (option.is_positional()) places.push_back(value_of(option));
  }
  return join(places, " ");
}

std::string unknown_option(const CommandUse& use, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CommandOption& option : use.options) {
    if (!option.is_positional()) names.push_back(option.name);
  }
  const auto place = std::ranges::find_if(use.options, [&](const CommandOption& option) {
    return option.is_positional() && option.name == without_dashes(name);
  });
  if (place != use.options.end()) {
    return fmt::format("unknown option '{}'; give it without a name: lacuna {} {}{}", name,
                       use.command, positionals(use), help_of(use));
  }
  const std::string key = as_key(use, argument), meant = meant_option(name, names);
  const std::string advice = !key.empty()     ? "this is a key of the configuration: --set " + key
                             : !meant.empty() ? "did you mean '" + meant + "'?"
                                              : "options: " + join(names, ", ");
  return fmt::format("unknown option '{}'; {}{}", name, advice, help_of(use));
}

std::string unexpected_argument(const CommandUse& use, const std::string& argument) {
  const std::string places = positionals(use);
  return fmt::format("'{}' is one argument too many: lacuna {} takes {}{}", argument, use.command,
                     places.empty() ? "only options" : places, help_of(use));
}

std::string missing_argument(const CommandUse& use, const std::string& parser_words) {
  const auto missing = std::ranges::find_if(use.options, [](const CommandOption& option) {
    return option.is_required && option.given.empty();
  });
  if (missing == use.options.end()) return parser_words + help_of(use);
  return fmt::format("lacuna {} needs {}: {}{}", use.command, spelled(*missing),
                     within_sentence(missing->about), help_of(use));
}

std::string wrong_count(const CommandUse& use, const CommandOption& option) {
  if (option.value.empty()) return option.name + " takes no value" + help_of(use);
  if (option.given.size() > 1) {
    return fmt::format("{} is given {} times; give it once", option.name, option.given.size());
  }
  return fmt::format("{} needs a value: {}{}", option.name, spelled(option), help_of(use));
}

std::string wrong_type(const CommandUse& use, const CommandOption& option) {
  if (option.value.empty()) return option.name + " takes no value" + help_of(use);
  const std::string found = option.given.empty() ? "nothing" : "'" + option.given.front() + "'";
  const bool is_number = !option.given.empty() && Config::plain(option.given.front()).is_number();
  return fmt::format("{}: expected {}, found {}", option.name,
                     is_number ? "a whole number of 64 bits" : "a number", found);
}

// The two that the parser names.
std::string excluded(const CommandUse& use, const std::string& parser_words) {
  std::vector<std::string> names;
  for (const CommandOption& option : use.options) {
    if (parser_words.find(option.name) != std::string::npos) names.push_back(option.name);
  }
  return join(names, " and ") + " are both given; give one of them";
}

}  // namespace

std::string usage_error(const CommandUse& use, const std::string& kind,
                        const std::string& parser_words) {
  for (const std::string& argument : use.unknown) {
    if (argument.size() > 1 && argument.starts_with('-')) return unknown_option(use, argument);
  }
  if (kind == "RequiredError") return missing_argument(use, parser_words);
  if (kind == "ExcludesError") return excluded(use, parser_words);
  const CommandOption* option = named_option(use, parser_words);
  if (kind == "ArgumentMismatch" && option != nullptr) return wrong_count(use, *option);
  if (kind == "ConversionError" && option != nullptr) return wrong_type(use, *option);
  // CLI11 2.1 names an extra argument by the command's name.
  const bool is_too_much = (kind == use.command || kind == "ExtrasError") && !use.unknown.empty();
  return is_too_much ? unexpected_argument(use, use.unknown.front()) : parser_words;
}

}  // namespace lacuna
