#include "lacuna/framework/model/substitution.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/expression.hpp"

namespace lacuna {
namespace {

const Config& find(const Config& place, const std::string& name, const Scope& scope) {
  const auto found = scope.arguments.find(name);
  if (found != scope.arguments.end()) return found->second;
  if (scope.owner.empty()) {
    place.error("'$" + name +
                "' is used outside a template (define), where there are no arguments");
  }
  std::vector<std::string> names;
  for (const auto& [known, value] : scope.arguments) names.push_back(known);
  place.error(fmt::format("the template '{}' has no argument '{}'{}{}", scope.owner, name,
                          names.empty() ? "" : "; ", suggest_name(name, names)));
}

Number number_of(const Config& place, const std::string& name, const Scope& scope) {
  const Config& value = find(place, name, scope);
  if (!value.is_number()) {
    place.error(fmt::format("'{}' is {}, which is not a number", name,
                            value.is_scalar() ? "'" + value.text() + "'" : value.text()));
  }
  const bool is_integer = value.text().find_first_not_of("+-0123456789") == std::string::npos;
  return is_integer ? Number::of(value.as<int64_t>()) : Number::of(value.as<double>());
}

Config value_of_expression(const Config& place, std::string_view expression, const Scope& scope) {
  const auto lookup = [&](const std::string& name) { return number_of(place, name, scope); };
  Config value;
  try {
    const Number number = evaluate(expression, lookup);
    value = number.is_integer ? Config(number.integer) : Config(number.real);
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    if (message.starts_with(place.where() + ": ")) throw;  // of a name
    place.error(message);
  }
  value.set_position(place.position());
  return value;
}

// Where the parenthesis that opens at `begin` closes.
size_t end_of_expression(const Config& place, std::string_view text, size_t begin) {
  int open = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '(') ++open;
    if (text[i] == ')' && --open == 0) return i;
  }
  place.error(fmt::format("a ')' is missing in '{}'", text));
}

// The value of what begins with the '$' at `at`, which is then behind it.
Config next_value(const Config& place, std::string_view text, size_t& at, const Scope& scope) {
  const size_t begin = at + 1;
  if (begin < text.size() && text[begin] == '(') {
    const size_t end = end_of_expression(place, text, begin);
    at = end + 1;
    return value_of_expression(place, text.substr(begin + 1, end - begin - 1), scope);
  }
  if (begin >= text.size() || !begins_name(text[begin])) {
    place.error(fmt::format(
        "in '{}': a '$' is followed by the name of an argument or by an expression in parentheses; "
        "the character itself is written $$",
        text));
  }
  at = begin;
  while (at < text.size() && is_name_character(text[at])) ++at;
  return find(place, std::string(text.substr(begin, at - begin)), scope).clone();
}

Config substitute_text(const Config& place, const Scope& scope) {
  const std::string text = place.text();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
    } else if (text.substr(at, 2) == "$$") {
      result += '$';
      at += 2;
    } else {
      const bool is_first = at == 0;
      const Config value = next_value(place, text, at, scope);
      if (is_first && at == text.size()) return value;
      if (!value.is_scalar()) {
        place.error(fmt::format("in '{}': {} cannot be used within text", text, value.text()));
      }
      result += value.text();
    }
  }
  Config value(result);
  value.set_position(place.position());
  return value;
}

}  // namespace

bool mentions_arguments(const Config& node) {
  if (node.is_scalar()) return node.text().find('$') != std::string::npos;
  return std::ranges::any_of(
      node.children(), [](const Config::Entry& child) { return mentions_arguments(child.second); });
}

std::set<std::string> mentioned_arguments(const Config& node) {
  std::set<std::string> names;
  if (node.is_null() || !mentions_arguments(node)) return names;
  if (!node.is_scalar()) {
    for (const auto& [key, value] : node.children()) names.merge(mentioned_arguments(value));
    return names;
  }
  const std::string text = node.text();
  for (size_t at = text.find('$'); at < text.size(); at = text.find('$', at)) {
    const bool is_sign = text.substr(at, 2) == "$$", is_expression = text.substr(at, 2) == "$(";
    const size_t end = is_expression ? end_of_expression(node, text, at + 1) : at + 1;
    for (++at; !is_sign && at < text.size() && (at <= end || !is_expression);) {
      const size_t begin = at;
      while (at < text.size() && is_name_character(text[at])) ++at;
      if (at > begin && begins_name(text[begin])) names.insert(text.substr(begin, at - begin));
      if (!is_expression) break;
      at += at == begin ? 1 : 0;
    }
    if (is_sign) ++at;
  }
  return names;
}

Config substitute(const Config& node, const Scope& scope) {
  if (!mentions_arguments(node)) return node.clone();
  if (node.is_scalar()) return substitute_text(node, scope);
  Config copy = node.clone();
  for (const auto& [key, value] : node.children()) {
    const Config changed = substitute(value, scope);
    node.is_list() ? copy.set_path(key, changed) : copy.set(key, changed);
  }
  return copy;
}

}  // namespace lacuna
