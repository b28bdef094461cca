#include "lacuna/framework/nn/path_clash.hpp"

#include <functional>
#include <map>
#include <string_view>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

// A path that is in use, and whether nothing may lie below it: below a parameter nothing does.
using Use = std::function<void(const std::string& path, bool is_parameter)>;

void for_each_path(Module& model, const Use& use) {
  for (Module* module : model.modules()) {
    if (!module->path().empty()) use(module->path(), false);
    for (const auto& [name, parameter] : module->own_parameters()) use(parameter->name(), true);
  }
}

std::string described(const std::string& path, bool is_parameter) {
  return (is_parameter ? "the parameter '" : "the module '") + path + "'";
}

}  // namespace

void require_module_name(const std::string& name) {
  const bool is_good = !name.empty() && !name.starts_with('.') && !name.ends_with('.') &&
                       name.find("..") == std::string::npos &&
                       name.find_first_of(std::string_view("/\0", 2)) == std::string::npos &&
                       is_utf8(name);
  if (is_good) return;
  throw StateError(
      "a module's name must be text (UTF-8) between single dots, without '/', found '" +
      printable(name) + "'");
}

void require_no_clash(Module& model, Module& child) {
  std::map<std::string, bool, std::less<>> added;  // path → is a parameter
  for_each_path(child, [&](const std::string& path, bool is_parameter) {
    added[path] |= is_parameter;  // a bare parameter has its module's path
  });
  const auto refuse = [](const std::string& what, const std::string& with) {
    throw StateError("the path of " + what + " is that of " + with +
                     " of the same model, or runs through it; give one of the layers another name");
  };
  for_each_path(model, [&](const std::string& path, bool is_parameter) {
    const auto same = added.find(path);
    if (same != added.end()) {
      refuse(described(path, same->second), described(path, is_parameter));
    }
    // Through a parameter that is added leads a path of the model,
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
      const auto above = added.find(std::string_view(path).substr(0, dot));
      if (above != added.end() && above->second) {
        refuse(described(path, is_parameter), described(above->first, true));
      }
    }
    // and through one of the model a path that is added.
    if (!is_parameter) return;
    const auto below = added.lower_bound(path + ".");
    if (below != added.end() && below->first.starts_with(path + ".")) {
      refuse(described(below->first, below->second), described(path, true));
    }
  });
}

}  // namespace lacuna
