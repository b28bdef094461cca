// The keys of configurations as docs/reference/config.md documents them, which is part of the
// program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// docs/reference/config.md; made by cmake/embed_files.cmake.
std::string config_reference();

/// A row of the page's tables of keys.
struct DocumentedKey {
  std::string path;                       ///< dotted: "train.epochs"
  std::string type;                       ///< in words: "integer", "true or false"
  std::string about;                      ///< its meaning, without markup
  std::vector<std::string> choices = {};  ///< names in backquotes, where the type is a name
};

/// The rows of a page, each key once, in their order.
std::vector<DocumentedKey> documented_keys(std::string_view page);

}  // namespace lacuna
