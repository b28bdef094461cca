#include "lacuna/framework/train/checks/loss_tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/sparsity/options/loss_table.h"

namespace lacuna {
namespace {

// The distributions of a section that are maps with a table.
std::vector<Config> with_tables(const Config& section) {
  std::vector<Config> entries = {section};
  if (section.is_list()) entries = section.items();
  if (section.is_map() && section.peek("phases").is_list()) entries = section.at("phases").items();
  std::vector<Config> found;
  for (const Config& entry : entries) {
    if (!entry.is_map()) continue;
    const Config distribution = entry.peek("distribution");
    if (distribution.is_map() && !distribution.peek("table").is_null()) {
      found.push_back(distribution);
    }
  }
  return found;
}

}  // namespace

void read_loss_tables(const Config& sparsity) {
  for (Config distribution : with_tables(sparsity)) {
    const Config given = distribution.get("table");
    if (!given.is_scalar()) continue;
    std::filesystem::path path = given.as<std::string>();
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown)) path /= kLossTableFile;
    try {
      distribution.set("table", load_yaml(path.string()));
    } catch (const Error& error) {
      given.error(fmt::format("the table of losses cannot be read: {}", error.what()));
    }
  }
}

void require_own_loss_tables(const Config& sparsity, Module& model) {
  const std::vector<ParameterPtr> parameters = model.parameters();
  for (const Config& distribution : with_tables(sparsity)) {
    const Config table = distribution.at("table");
    const LossTable losses = LossTable::from_config(table);
    const std::vector<Config> rows = table.at("rows").items();
    for (size_t i = 0; i < rows.size(); ++i) {
      const LossTable::Row& row = losses.rows[i];
      const auto own = std::ranges::find(
          parameters, row.parameter, [](const ParameterPtr& p) -> auto& { return p->name(); });
      if (own == parameters.end()) {
        rows[i]
            .at("parameter")
            .error(fmt::format(
                "the table of losses is of another model: there is no parameter '{}' in this one",
                row.parameter));
      }
      if ((*own)->shape() != row.shape) {
        rows[i].at("shape").error(
            fmt::format("the table of losses is of another model: '{}' has shape {} in this one",
                        row.parameter, (*own)->shape().to_string()));
      }
    }
  }
}

}  // namespace lacuna
