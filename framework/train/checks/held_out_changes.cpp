#include "lacuna/framework/train/checks/held_out_changes.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lacuna/framework/data/load_data.h"

namespace lacuna {
namespace {

// 0 where it is absent, which is what these keys then mean.
Config value_of(const Config& config, const std::string& path) {
  const Config value = config.peek(path);
  return value.is_null() ? Config(0) : value;
}

bool is_above_0(const Config& value) { return value.is_number() && value.as<double>() > 0.0; }

const std::vector<std::string>& choosing_keys(const Config& config) {
  return dataset_type(config.peek("data")).split_keys;
}

bool chooses(const std::vector<std::string>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

std::string changed_split_key(const Config& run, const Config& now) {
  if (!(run.peek("data.type") == now.peek("data.type"))) return "";
  const std::vector<std::string>& keys = choosing_keys(now);
  bool holds_out = false;
  for (const char* key : {"data.validation", "data.test"}) {
    holds_out |= chooses(keys, key) && is_above_0(now.peek(key));
  }
  if (!holds_out || replaces_own_test_split(run, now)) return "";
  for (const std::string& key : keys) {
    const Config before = value_of(run, key), after = value_of(now, key);
    // What the type reads itself has a default of its own where it is absent.
    const bool is_own = key != "data.test" && !chooses(DatasetType().split_keys, key);
    if (is_own && now.peek(key).is_null()) continue;
    // Neither a file nor 0 holds out examples.
    const bool may_be_file = key == "data.test" || key == "data.validation";
    const bool are_none = may_be_file && !is_above_0(before) && !is_above_0(after);
    // A test split is taken from the other end of the order, so it stays where this one is left
    // out.
    const bool is_left_out =
        key == "data.validation" && is_above_0(now.peek("data.test")) && !is_above_0(after);
    if (!are_none && !is_left_out && !(before == after)) return key;
  }
  return "";
}

bool replaces_own_test_split(const Config& run, const Config& now) {
  const Config after = now.peek("data.test");
  return chooses(choosing_keys(now), "data.test") && is_above_0(run.peek("data.test")) &&
         after.is_scalar() && !after.is_number();
}

}  // namespace lacuna
