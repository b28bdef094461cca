#include "lacuna/framework/program/settings/data_paths.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/program/settings/keys.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

// Puts what `better` gives in the place of each path. What has another meaning too is no path
// where nothing is there (data.validation may be a number, and model.init_from a map).
void replace_paths(Config& config,
                   const std::function<std::optional<fs::path>(const fs::path&)>& better) {
  for (const KeyTraits& key : config_keys()) {
    const Config value = config.peek(key.path);
    if (!key.is_path || !value.is_scalar() || value.is_number() || value.is_bool()) continue;
    const fs::path given = value.text();
    if (given.empty() || given.is_absolute()) continue;
    const std::optional<fs::path> found = better(given);
    if (!found || !is_utf8(found->string())) continue;
    Config replaced(found->lexically_normal().string());
    replaced.set_position(value.position());
    config.set_path(key.path, replaced);
  }
}

fs::path made_absolute(const fs::path& path) {
  std::error_code unknown;  // a current folder that was removed
  const fs::path found = fs::absolute(path, unknown);
  return unknown ? path : found;
}

}  // namespace

std::vector<std::string> find_beside(Config& config, const std::string& config_path) {
  const fs::path folder = fs::path(config_path).parent_path();
  if (folder.empty()) return {};
  std::vector<std::string> found;
  replace_paths(config, [&](const fs::path& given) -> std::optional<fs::path> {
    if (is_there(given) || !is_there(folder / given)) return std::nullopt;
    found.push_back("'" + given.string() + "'");
    return made_absolute(folder / given);
  });
  if (found.empty()) return {};
  return {join(found, ", ") + (found.size() == 1 ? " is" : " are") +
          " not in the current folder; taken from that of " + config_path};
}

void make_paths_absolute(Config& config) {
  replace_paths(config, [](const fs::path& given) -> std::optional<fs::path> {
    if (!is_there(given)) return std::nullopt;
    return made_absolute(given);
  });
}

}  // namespace lacuna
