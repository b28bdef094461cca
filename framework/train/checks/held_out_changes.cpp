#include "lacuna/framework/train/checks/held_out_changes.hpp"

#include <vector>

namespace lacuna {
namespace {

// Of `section.key`; 0 where it is absent, which is what each of these keys then means.
Config value_of(const Config& config, const std::string& path) {
  const size_t dot = path.find('.');
  const Config section = config.get(path.substr(0, dot));
  const Config value = section.is_map() ? section.get(path.substr(dot + 1)) : Config();
  return value.is_null() ? Config(0) : value;
}

bool is_above_0(const Config& value) { return value.is_number() && value.as<double>() > 0.0; }

// Keys that say which of the training examples are held out.
std::vector<std::string> choosing_keys(const std::string& type) {
  if (type == "tokens") return {"data.validation"};
  if (type == "text") return {"data.validation", "data.test"};  // at the end, in this order
  return {"data.validation", "train.seed", "data.limit", "data.train_size"};
}

}  // namespace

std::string moves_held_out_splits(const Config& given_run, const Config& given_now) {
  const Config run = given_run.clone(), now = given_now.clone();  // looking marks keys as read
  const std::string type = value_of(now, "data.type").text();
  if (type != value_of(run, "data.type").text()) return "";
  const bool holds_out = is_above_0(value_of(now, "data.validation")) ||
                         (type == "text" && is_above_0(value_of(now, "data.test")));
  if (!holds_out || replaces_own_test_split(run, now)) return "";
  for (const std::string& key : choosing_keys(type)) {
    const Config before = value_of(run, key), after = value_of(now, key);
    if (key == "data.train_size" && !now.get("data").has("train_size")) continue;  // the default
    // A file holds out nothing, and neither does 0.
    const bool are_none = key == "data.test" && !is_above_0(before) && !is_above_0(after);
    if (!are_none && !(before == after)) return key;
  }
  return "";
}

bool replaces_own_test_split(const Config& given_run, const Config& given_now) {
  const Config run = given_run.clone(), now = given_now.clone();
  const Config before = value_of(run, "data.test"), after = value_of(now, "data.test");
  return value_of(now, "data.type").text() == "text" && is_above_0(before) && after.is_scalar() &&
         !after.is_number();
}

}  // namespace lacuna
