#include "lacuna/framework/data/hold_out.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/changes/permutation.hpp"

namespace lacuna {
namespace {

// How many of `size` examples a key holds out for a split.
int64_t held_out_count(const Config& data, const char* key, int64_t size) {
  const Config node = data.get(key);
  const double wanted = node.is_null() ? 0.0 : node.as<double>();
  const bool is_whole_fraction = wanted == 1 && node.text().find('.') != std::string::npos;
  if (!(wanted >= 0) || (wanted >= 1 && wanted != std::floor(wanted)) || is_whole_fraction) {
    node.fail("a count (0, 1, 2, …) or a fraction between 0 and 1");
  }
  if (wanted == 0) return 0;
  const double count =
      wanted < 1 ? std::max(1.0, std::round(wanted * static_cast<double>(size))) : wanted;
  if (count >= static_cast<double>(size)) {
    node.error(fmt::format("holds out {} of {}; at least one must be left to train on", node.text(),
                           plural(size, "training example")));
  }
  return static_cast<int64_t>(count);
}

// The same, where the type of the data leaves it to load_data.
int64_t count_of_split(const Config& data, const char* key, int64_t size,
                       const std::shared_ptr<const Dataset>& own) {
  const Config node = data.get(key);
  if (own != nullptr && !node.is_number()) return 0;  // it may be a file
  const int64_t count = held_out_count(data, key, size);
  if (count > 0 && own != nullptr) {
    node.error(fmt::format("data of the type '{}' has a {} split of its own; leave this key out",
                           data.required<std::string>("type"), key));
  }
  return count;
}

}  // namespace

std::vector<int64_t> HoldOut::staying() const {
  if (train) return *train;
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

HoldOut hold_out(const Config& data, const DataSplits& splits, uint64_t seed) {
  HoldOut parts{.size = splits.train->size(), .train = {}};
  int64_t used = parts.size;
  if (const auto limit = data.optional<int64_t>("limit")) {
    used = std::min(used, require_at_least(data, "limit", *limit, 1));
  }
  int64_t validation = 0, test = 0;
  if (!splits.is_held_out) {
    if (!data.has("validation")) data.get<double>("validation", 0.0);  // writes the default
    validation = count_of_split(data, "validation", used, splits.validation);
    const std::vector<std::string>& keys = dataset_type(data).split_keys;
    if (std::ranges::find(keys, "data.test") != keys.end()) {
      test = count_of_split(data, "test", used, splits.test);
    }
  }
  if (validation + test >= used && test > 0) {
    data.get("test").error(fmt::format(
        "this and data.validation hold out {} of {} training examples; at least one must be left "
        "to train on",
        validation + test, used));
  }
  if (validation + test == 0) {
    if (used == parts.size) return parts;
    parts.train.emplace(static_cast<size_t>(used));
    std::iota(parts.train->begin(), parts.train->end(), int64_t{0});
    return parts;
  }
  std::vector<int64_t> order = seeded_permutation(used, seed, "validation");
  parts.validation.assign(order.begin(), order.begin() + validation);
  parts.test.assign(order.end() - test, order.end());
  parts.train.emplace(order.begin() + validation, order.end() - test);
  for (auto* indices : {&parts.validation, &parts.test, &*parts.train}) {
    std::ranges::sort(*indices);
  }
  return parts;
}

}  // namespace lacuna
