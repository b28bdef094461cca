// The runs of a sweep: combinations of values, each with its folder's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

struct SweepRun {
  std::string name;                    ///< of its folder: "KEY=VALUE,…,seed=N"
  std::string label;                   ///< the same without the seed
  std::vector<std::string> overrides;  ///< "path=value", the seed among them
};

/// The values of "path=value,value": split at commas outside of brackets and quotes. The first
/// entry is the path. *Errors:* ConfigError when there is no path, or a value is empty.
std::vector<std::string> split_over(const std::string& over);

/// All combinations, the first key changing slowest, the seeds `first_seed`, … fastest.
/// *Errors:* ConfigError as above, when a key comes twice or a value does, and when a folder's name
/// would be too long for a file system.
std::vector<SweepRun> plan_sweep(const std::vector<std::string>& over, int64_t first_seed,
                                 int64_t seeds);

}  // namespace lacuna
