#include "lacuna/framework/train/parts/run_positions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

constexpr std::array<std::string_view, 10> kStepKeys = {"half_period", "start", "stop",  "end",
                                                        "milestones",  "freq",  "steps", "every",
                                                        "until",       "warmup"};

// The unit of "3 epochs", and the number before it.
struct Amount {
  double number = 0.0;
  std::string_view unit;
};

std::optional<Amount> amount_of(std::string_view text) {
  Amount amount;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  if (error != std::errc()) return std::nullopt;
  amount.unit = text.substr(static_cast<size_t>(end - text.data()));
  if (amount.unit.starts_with(' ')) amount.unit.remove_prefix(1);
  return amount;
}

// Nothing where a scalar is no position, or stands in a key that has none.
std::optional<int64_t> steps_of(const Config& value, bool counts_steps, const RunLength& length) {
  if (!counts_steps || !value.is_scalar() || value.is_number()) return std::nullopt;
  const std::string text = value.text();
  const std::optional<Amount> amount = amount_of(text);
  if (!amount) return std::nullopt;
  double unit = 0.0;
  if (amount->unit == "%") {
    if (!(amount->number >= 0.0 && amount->number <= 100.0)) value.fail("0 % to 100 % of the run");
    unit = static_cast<double>(length.steps) / 100.0;
  } else if (amount->unit == "epochs" || amount->unit == "epoch") {
    unit = static_cast<double>(length.steps_per_epoch);
  } else if (amount->unit == "steps" || amount->unit == "step") {
    unit = 1.0;
  } else {
    return std::nullopt;
  }
  const double steps = std::round(amount->number * unit);
  if (!(amount->number >= 0.0 && steps <= static_cast<double>(kMostInteger))) {
    value.fail("a position such as '500 steps', '3 epochs' or '75 %'");
  }
  return amount->number > 0.0 ? std::max<int64_t>(static_cast<int64_t>(steps), 1) : 0;
}

void resolve(Config node, bool counts_steps, const RunLength& length) {
  const std::vector<Config::Entry> children = node.children();  // a copy: the node changes below
  for (const auto& [key, child] : children) {
    const bool counts =
        node.is_map() ? std::ranges::find(kStepKeys, key) != kStepKeys.end() : counts_steps;
    if (const auto steps = steps_of(child, counts, length)) {
      Config written(*steps);
      written.set_position(child.position());
      node.is_map() ? node.set(key, written) : node.set_path(key, written);
    } else {
      resolve(child, counts, length);
    }
  }
}

void set_if_absent(Config& map, const char* key, int64_t value) {
  if (map.peek(key).is_null()) map.set(key, value);
}

}  // namespace

void resolve_positions(const Config& section, const RunLength& length) {
  resolve(section, false, length);
}

void complete_schedule(Config schedule, int64_t start, int64_t end) {
  if (!schedule.is_map() || !schedule.peek("type").is_scalar()) return;
  const std::string type = to_lower(schedule.peek("type").text());
  if (type == "polynomial") {
    set_if_absent(schedule, "start", start);
    const Config given = schedule.peek("start");
    if (given.is_number()) set_if_absent(schedule, "end", std::max(end, given.as<int64_t>() + 1));
  } else if ((type == "cosine" || type == "cosine_once") &&
             schedule.peek("half_period").is_null()) {
    schedule.set("type", "cosine_once");
    set_if_absent(schedule, "start", start);
    const Config given = schedule.peek("start");
    if (!given.is_number()) return;  // its reader refuses it
    schedule.set("half_period", std::max<int64_t>(end - given.as<int64_t>(), 1));
  }
}

void complete_optimizer(const Config& optimizer, const RunLength& length) {
  resolve_positions(optimizer, length);
  const Config warmup = optimizer.peek("warmup");
  const int64_t start = warmup.is_number() ? warmup.as<int64_t>() : 0;
  complete_schedule(optimizer.peek("lr"), start, length.steps);
  const Config groups = optimizer.peek("groups");
  for (const auto& [index, group] : groups.children()) {
    if (group.is_map()) complete_schedule(group.peek("lr"), start, length.steps);
  }
}

}  // namespace lacuna
