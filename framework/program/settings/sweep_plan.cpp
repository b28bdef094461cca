#include "lacuna/framework/program/settings/sweep_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

constexpr size_t kMostNameBytes = 240;
constexpr size_t kMostRuns = 100'000;
constexpr const char* kSeedKey = "train.seed";

using Combination = std::vector<SweepSetting>;  // one of each axis

// A name may hold neither slashes nor what a terminal takes for something else.
std::string file_name_of(const std::string& text) {
  std::string name = text;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; }, '_');
  return name;
}

// "algorithm-rigl-sparsity-0.9" of "{algorithm: rigl, sparsity: 0.9}", with the signs of numbers; a
// long one is cut, and ends in four digits of its hash.
std::string short_value(const std::string& value) {
  constexpr size_t kMostWhole = 40, kCut = 32;
  const bool is_plain = value.find_first_of("{}[]\"'") == std::string::npos;
  if (is_plain && value.size() <= kMostWhole) return value;
  std::string words;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i], next = i + 1 < value.size() ? value[i + 1] : ' ';
    const bool is_sign = (c == '-' || c == '+') && ((next >= '0' && next <= '9') || next == '.');
    const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
                         std::string_view("._").find(c) != std::string_view::npos;
    if (is_kept || is_sign) {
      words += c;
    } else if (!words.empty() && words.back() != '-') {
      words += '-';
    }
  }
  while (words.ends_with('-')) words.pop_back();
  if (words.size() <= kMostWhole && !words.empty()) return words;
  size_t cut = std::min(words.size(), kCut);
  while (cut > 0 && cut < words.size() && (words[cut] & 0xC0) == 0x80) --cut;
  return words.substr(0, cut) + fmt::format("~{:04x}", hash_name(value) & 0xFFFF);
}

// Keys by their last parts if these differ; a number alone means nothing.
std::map<std::string, std::string> short_keys(const std::vector<SweepAxis>& axes) {
  std::map<std::string, int> uses{{"seed", 1}};
  const auto last_part = [](const std::string& key) {
    const std::string last = key.substr(key.rfind('.') + 1);
    const bool is_number = std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? key : last;
  };
  for (const SweepAxis& axis : axes) {
    for (const std::string& key : axis.keys) ++uses[last_part(key)];
  }
  std::map<std::string, std::string> names;
  for (const SweepAxis& axis : axes) {
    for (const std::string& key : axis.keys) {
      names[key] = uses[last_part(key)] == 1 ? last_part(key) : key;
    }
  }
  return names;
}

// A name of a file's is taken as it is; "optimizer.lr=0.1" becomes "lr=0.1".
std::string short_label(const SweepSetting& setting,
                        const std::map<std::string, std::string>& keys) {
  const size_t sign = setting.label.find('=');
  const auto key = keys.find(setting.label.substr(0, sign));
  const bool is_named = setting.overrides != std::vector<std::string>{setting.label};
  if (is_named || sign == std::string::npos || key == keys.end()) return short_value(setting.label);
  return key->second + "=" + short_value(setting.label.substr(sign + 1));
}

std::vector<SweepAxis> read_axes(const std::vector<std::string>& over) {
  std::vector<SweepAxis> axes;
  std::set<std::string> keys = {kSeedKey};
  for (const std::string& text : over) {
    axes.push_back(read_axis(text));
    for (const std::string& key : axes.back().keys) {
      if (keys.insert(key).second) continue;
      throw ConfigError(
          "--over " + text + ": " +
          (key == kSeedKey ? "seeds are given by --seeds" : "the key " + key + " is given twice"));
    }
  }
  return axes;
}

std::vector<Combination> all_combinations(const std::vector<SweepAxis>& axes) {
  std::vector<Combination> combinations(1);
  for (const SweepAxis& axis : axes) {
    if (!axis.range.empty()) {
      throw ConfigError("--over " + axis.text + ": a range needs --random N, the number of draws");
    }
    std::vector<Combination> longer;
    for (const Combination& before : combinations) {
      for (const SweepSetting& setting : axis.settings) {
        longer.push_back(before);
        longer.back().push_back(setting);
      }
      if (longer.size() > kMostRuns) throw ConfigError("--over: more than 100000 runs");
    }
    combinations = std::move(longer);
  }
  return combinations;
}

// One draw: each axis has numbers of its own, so that another axis changes none of them.
Combination draw(const std::vector<SweepAxis>& axes, int64_t seed, uint64_t index) {
  Combination combination;
  for (const SweepAxis& axis : axes) {
    const CounterRng rng(static_cast<uint64_t>(seed), axis.text);
    if (axis.range.empty()) {
      const auto place = static_cast<size_t>(rng.below(index, axis.settings.size()));
      combination.push_back(axis.settings[place]);
      continue;
    }
    const std::string text =
        axis.keys[0] + "=" + axis.range[0].at(static_cast<double>(rng.uniform(index)));
    combination.push_back({.label = text, .overrides = {text}});
  }
  return combination;
}

std::vector<Combination> drawn_combinations(const std::vector<SweepAxis>& axes,
                                            const RandomDraws& random) {
  if (axes.empty()) throw ConfigError("--random: there is no --over to draw from");
  std::vector<Combination> combinations;
  std::set<std::string> seen;
  const auto most = 100 * static_cast<uint64_t>(random.count) + 1000;
  for (uint64_t index = 0; index < most && std::ssize(combinations) < random.count; ++index) {
    Combination combination = draw(axes, random.seed, index);
    std::string label;
    for (const SweepSetting& setting : combination) label += setting.label + ",";
    if (seen.insert(label).second) combinations.push_back(std::move(combination));
  }
  if (std::ssize(combinations) == random.count) return combinations;
  throw ConfigError(
      fmt::format("--random {}: only {} different combinations were found; ask for fewer, or leave "
                  "--random out",
                  random.count, combinations.size()));
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

std::vector<SweepRun> plan_sweep(const std::vector<std::string>& over, int64_t first_seed,
                                 int64_t seeds, const RandomDraws& random) {
  const std::vector<SweepAxis> axes = read_axes(over);
  const std::map<std::string, std::string> keys = short_keys(axes);
  std::vector<SweepRun> runs;
  std::set<std::string> names;
  for (const Combination& combination :
       random.count > 0 ? drawn_combinations(axes, random) : all_combinations(axes)) {
    std::vector<std::string> parts, short_parts, overrides;
    for (const SweepSetting& setting : combination) {
      parts.push_back(setting.label);
      short_parts.push_back(short_label(setting, keys));
      overrides.insert(overrides.end(), setting.overrides.begin(), setting.overrides.end());
    }
    for (int64_t seed = first_seed; seed - first_seed < seeds; ++seed) {
      const std::string end = fmt::format("seed={}", seed);
      const auto with_seed = [&](std::vector<std::string> words) {
        words.push_back(end);
        return file_name_of(joined(words));
      };
      SweepRun& run = runs.emplace_back(SweepRun{.name = with_seed(short_parts),
                                                 .long_name = with_seed(parts),
                                                 .label = joined(parts),
                                                 .overrides = overrides});
      run.overrides.push_back("train." + end);
      if (run.label.empty()) run.label = "as configured";
      if (!names.insert(run.name).second) {
        throw ConfigError("--over: two runs would have the folder '" + run.name + "'");
      }
      if (run.name.size() > kMostNameBytes) {
        throw ConfigError("--over: the folder's name '" + run.name + "' is too long");
      }
      if (runs.size() > kMostRuns) throw ConfigError("--seeds: more than 100000 runs");
    }
  }
  return runs;
}

}  // namespace lacuna
