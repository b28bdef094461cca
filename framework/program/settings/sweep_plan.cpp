#include "lacuna/framework/program/settings/sweep_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr size_t kMostNameBytes = 240;
constexpr size_t kMostRuns = 100'000;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  for (std::string& value : values) value = trimmed(value);
  return values;
}

std::string without_quotes(const std::string& text) {
  const bool is_quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                         text.back() == text.front();
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Whether two values make the same run: 3 and 3.0, 1e-3 and 0.001, adam and "adam", [1, 2] and
// [1,2].
bool is_same_value(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const Config a = Config::plain(one), b = Config::plain(other);
  if (a.is_number() && b.is_number()) return a.as<double>() == b.as<double>();
  if (a.is_bool() && b.is_bool()) return a.as<bool>() == b.as<bool>();
  if (a.is_number() != b.is_number()) return false;  // "3" in quotes is a text
  const auto plain = [](const std::string& text) {
    std::string kept = without_quotes(text);
    std::erase(kept, ' ');
    return kept;
  };
  return plain(one) == plain(other);
}

// A name may hold neither slashes nor what a terminal takes for something else.
std::string file_name_of(const std::string& text) {
  std::string name = text;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; }, '_');
  return name;
}

}  // namespace

std::vector<std::string> split_over(const std::string& over) {
  const size_t sign = over.find('=');
  if (sign == std::string::npos || trimmed(over.substr(0, sign)).empty()) {
    throw ConfigError("--over " + over + ": expected path=value,value,...");
  }
  std::vector<std::string> parts{trimmed(over.substr(0, sign))};
  for (std::string& value : split_values(over.substr(sign + 1))) {
    if (value.empty()) throw ConfigError("--over " + over + ": a value is empty");
    const auto same = std::find_if(parts.begin() + 1, parts.end(),
                                   [&](const auto& other) { return is_same_value(other, value); });
    if (same != parts.end()) {
      throw ConfigError("--over " + over + ": the value " + value + " comes twice" +
                        (*same == value ? "" : ", as " + *same + " too"));
    }
    parts.push_back(std::move(value));
  }
  return parts;
}

std::vector<SweepRun> plan_sweep(const std::vector<std::string>& over, int64_t first_seed,
                                 int64_t seeds) {
  std::vector<SweepRun> runs(1);
  std::vector<std::string> keys = {"train.seed"};
  for (const std::string& text : over) {
    const std::vector<std::string> parts = split_over(text);
    if (std::ranges::find(keys, parts[0]) != keys.end()) {
      throw ConfigError("--over " + text + ": " +
                        (parts[0] == keys[0] ? "seeds are given by --seeds"
                                             : "the key " + parts[0] + " comes twice"));
    }
    keys.push_back(parts[0]);
    std::vector<SweepRun> longer;
    for (const SweepRun& run : runs) {
      for (size_t i = 1; i < parts.size(); ++i) {
        SweepRun& next = longer.emplace_back(run);
        const std::string assignment = parts[0] + "=" + parts[i];
        next.label += (next.label.empty() ? "" : ",") + assignment;
        next.overrides.push_back(assignment);
      }
      if (longer.size() > kMostRuns) throw ConfigError("--over: these are more than 100000 runs");
    }
    runs = std::move(longer);
  }
  std::vector<SweepRun> with_seeds;
  std::set<std::string> names;
  for (const SweepRun& run : runs) {
    for (int64_t seed = first_seed; seed - first_seed < seeds; ++seed) {
      SweepRun& next = with_seeds.emplace_back(run);
      next.name =
          file_name_of(run.label + (run.label.empty() ? "" : ",") + fmt::format("seed={}", seed));
      next.overrides.push_back(fmt::format("train.seed={}", seed));
      if (next.label.empty()) next.label = "as configured";
      if (!names.insert(next.name).second) {
        throw ConfigError("--over: two runs would have the folder '" + next.name + "'");
      }
      if (next.name.size() > kMostNameBytes) {
        throw ConfigError("--over: the folder's name '" + next.name + "' is too long");
      }
      if (with_seeds.size() > kMostRuns) throw ConfigError("--seeds: more than 100000 runs");
    }
  }
  return with_seeds;
}

}  // namespace lacuna
