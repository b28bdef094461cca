// Which layouts a command line asks for.
#pragma once

#include <string>
#include <vector>

namespace lacuna::bench {

/// The name of the contender that layouts are compared with.
inline constexpr const char* kDense = "dense";

/// Names of layouts that contenders have: csr, auto, "nm 2:4", "nm 2:4 g8", "block 16x16".
class LayoutChoice {
 public:
  /// Empty: all. *Errors:* ConfigError on another name.
  explicit LayoutChoice(std::vector<std::string> names);
  bool has(const std::string& layout) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace lacuna::bench
