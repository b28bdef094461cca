// Which of the training examples are held out for validation and test.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Of `size` training examples, the indices that stay and those held out, each in ascending order.
/// All stay where `train` is absent: there may be more of them than memory holds indices.
struct HoldOut {
  int64_t size = 0;
  std::optional<std::vector<int64_t>> train;
  std::vector<int64_t> validation = {}, test = {};

  std::vector<int64_t> staying() const;
};

/// By `data.limit`, `data.validation` and, of types that hold a test split out, `data.test`: the
/// validation split is the beginning of a permutation that depends on `seed` alone, the test split
/// its end, so that neither depends on the size of the other. *Errors:* ConfigError on numbers out
/// of range, and where the data has such a split of its own.
HoldOut hold_out(const Config& data, const DataSplits& splits, uint64_t seed);

}  // namespace lacuna
