// Tables of losses that a configuration names (`distribution: {type: measured, table: FILE}`).
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The file in a run's folder.
inline constexpr const char* kLossTableFile = "loss_table.json";

/// Writes the tables into a `sparsity` section in the place of the paths of their files, so that a
/// run's configuration has them. A run folder stands for the table in it. *Errors:* ConfigError at
/// the key if the file cannot be read.
void read_loss_tables(const Config& sparsity);

/// *Errors:* ConfigError at the row if a table has one of a parameter that the model lacks, or that
/// has another shape there.
void require_own_loss_tables(const Config& sparsity, Module& model);

}  // namespace lacuna
