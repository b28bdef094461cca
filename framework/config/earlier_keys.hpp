// Keys of configurations that have been given other names.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Renames the section `sparsify` of earlier versions, which is still read, to `sparsifiers`.
/// *Errors:* ConfigError when both are there.
void rename_earlier_keys(const Config& config);

/// "sparsifiers.0.layout=csr" for the assignment "sparsify.0.layout=csr"; others as they are.
std::string renamed_assignment(const std::string& assignment);

}  // namespace lacuna
