// The runs of a sweep: combinations of values, each with its folder's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/program/settings/sweep_values.hpp"

namespace lacuna {

struct SweepRun {
  std::string name;       ///< of its folder: "lr=0.1,…,seed=N"
  std::string long_name;  ///< with whole keys and values, as earlier versions called the folder
  std::string label;      ///< the same without the seed
  std::vector<std::string> overrides;  ///< "path=value", the seed among them
};

/// Instead of all combinations so many that are drawn; 0: all.
struct RandomDraws {
  int64_t count = 0;
  int64_t seed = 0;
};

/// All combinations, the first key changing slowest, the seeds `first_seed`, … fastest; or draws
/// among them, which are different from each other and the same for the same seed and `over`,
/// however many there are. In folders' names keys have their last part, where that tells them
/// apart, and long values are shortened. *Errors:* ConfigError as `read_axis`, when a key comes
/// twice, when there are more than 100,000 runs, a range without draws, or fewer combinations than
/// draws, and when two runs would have one folder.
std::vector<SweepRun> plan_sweep(const std::vector<std::string>& over, int64_t first_seed,
                                 int64_t seeds, const RandomDraws& random = {});

}  // namespace lacuna
