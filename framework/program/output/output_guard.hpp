// What a command writes is nothing that it reads.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// *Errors:* ConfigError where `path`, which `option` writes, leads to a file that is
/// read: to one of `read`, or to one below a folder of them, by whatever names, links and hard
/// links. *Cost:* where there is a file at `path`, that of listing the folders.
void require_not_read(const std::string& option, const std::string& path,
                      const std::vector<std::string>& read);

/// For a table that is written to `path`: what is there already is text, and no image, model or
/// archive. *Errors:* ConfigError that begins with `option`.
void require_text_or_nothing(const std::string& option, const std::string& path);

/// Every text of the configuration that is the path of a file: tables, vocabularies, weights.
std::vector<std::string> files_named_in(const Config& config);

}  // namespace lacuna
