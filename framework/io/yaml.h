// YAML text into a Config.
#pragma once

#include <string>
#include <string_view>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Reads a YAML file: one document, whose nodes know file, line and column.
///
/// Anchors, aliases and merge keys (`<<`) are replaced by copies of what they name. Quoted scalars
/// are text; the type of plain ones follows from their text. In a file whose name ends in .json,
/// two escapes of surrogates ("\ud83d\ude00") are one character. *Errors:* ConfigError if the file
/// cannot be read or is larger than 4 MiB; with file:line:column if it is not YAML, if a key is
/// given twice or is not text, if there is no document or more than one, and if it nests deeper
/// than 100 or expands to more than a million nodes.
Config load_yaml(const std::string& path);

/// Reads YAML from text as `load_yaml` does; `file_name` appears in positions and messages.
Config parse_yaml(std::string_view text, const std::string& file_name);

/// Applies "a.b.0=value": the value is read as YAML (a list or map too) and set in `root` under the
/// dotted path (Config::set_path). Its nodes have the position "--set a.b.0=value". *Errors:*
/// ConfigError that quotes the assignment, also when `root` would nest deeper than 100 (it could
/// not be read again); `root` is then unchanged in value.
void apply_override(Config& root, std::string_view assignment);

}  // namespace lacuna
