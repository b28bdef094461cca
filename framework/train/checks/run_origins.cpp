#include "lacuna/framework/train/checks/run_origins.hpp"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <type_traits>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/checks/column_checks.hpp"

namespace lacuna {
namespace {

constexpr HashLimits kAll{.all_up_to = std::numeric_limits<int64_t>::max()};

const char* key_of(Split split) {
  return split == Split::Train ? "train" : split == Split::Validation ? "validation" : "test";
}

const char* name_of(Split split) { return split == Split::Train ? "training" : key_of(split); }

const std::optional<DataHash>& hash_of(const SplitHashes& hashes, Split split) {
  return split == Split::Train        ? hashes.train
         : split == Split::Validation ? hashes.validation
                                      : hashes.test;
}

constexpr Split kSplits[] = {Split::Train, Split::Validation, Split::Test};

std::string in_hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

uint64_t from_hex(const Config& node) {
  const auto text = node.as<std::string>();
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size()) node.fail("a hash in hexadecimal");
  return hash;
}

std::string hashes_to_json(const SplitHashes& hashes) {
  Config all = Config::map();
  for (const Split split : kSplits) {
    const std::optional<DataHash>& hash = hash_of(hashes, split);
    if (!hash) continue;
    all.set(key_of(split), Config::map({{"size", hash->size},
                                        {"inputs", in_hex(hash->inputs)},
                                        {"answers", in_hex(hash->answers)}}));
  }
  return all.to_json();
}

SplitHashes hashes_from_json(const std::string& json) {
  const Config all = parse_yaml(json, "hashes");
  const auto read = [&](Split split) -> std::optional<DataHash> {
    if (!all.has(key_of(split))) return std::nullopt;
    const Config hash = all.at(key_of(split));
    return DataHash{.size = hash.required<int64_t>("size"),
                    .inputs = from_hex(hash.at("inputs")),
                    .answers = from_hex(hash.at("answers"))};
  };
  return {.train = read(Split::Train),
          .validation = read(Split::Validation),
          .test = read(Split::Test)};
}

uint64_t hash_text(const std::string& text, uint64_t before) {
  return hash_values(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()), kAll,
                     before);
}

uint64_t hash_value(const StateDict::Value& value, uint64_t before) {
  return std::visit(
      [&](const auto& typed) {
        using T = std::decay_t<decltype(typed)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return hash_values(typed.to_vector(), kAll, before);
        } else if constexpr (std::is_same_v<T, ByteArray>) {
          return hash_values(typed.values, kAll, before);
        } else if constexpr (std::is_same_v<T, SignedBytes>) {
          return hash_values(
              std::span(reinterpret_cast<const uint8_t*>(typed.values.data()), typed.values.size()),
              kAll, before);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return hash_values(typed, kAll, before);
        } else if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
          uint64_t hash = joined_hash(before, typed.size());
          for (const uint32_t number : typed) hash = joined_hash(hash, number);
          return hash;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return hash_text(typed, before);
        } else {
          return joined_hash(before, std::bit_cast<uint64_t>(typed));
        }
      },
      value);
}

}  // namespace

uint64_t hash_state(const StateDict& state) {
  uint64_t hash = kEmptyHash;
  for (const auto& [name, value] : state.values()) hash = hash_value(value, hash_text(name, hash));
  return hash;
}

StateDict RunOrigins::state_dict() const {
  StateDict state;
  state.set("data", hashes_to_json(data));
  if (teacher) {
    state.set("teacher",
              Config::map({{"step", teacher->step}, {"hash", in_hex(teacher->hash)}}).to_json());
  }
  return state;
}

RunOrigins RunOrigins::from_state(const StateDict& whole) {
  RunOrigins origins;
  const auto read = [&](const std::string& name, const auto& use) {
    if (!whole.contains(name)) return;
    try {
      use(whole.get<std::string>(name));
    } catch (const ConfigError& error) {
      throw CheckpointError("'" + name + "' in the saved state cannot be read: " + error.what());
    }
  };
  read("origins/data", [&](const std::string& json) { origins.data = hashes_from_json(json); });
  read("origins/teacher", [&](const std::string& json) {
    const Config saved = parse_yaml(json, "teacher");
    origins.teacher = {.step = saved.required<int64_t>("step"), .hash = from_hex(saved.at("hash"))};
  });
  read("data/columns", [&](const std::string& json) { origins.columns = columns_from_json(json); });
  if (whole.contains("loader/dataset_size")) {
    origins.train_size = whole.count("loader/dataset_size");
  }
  return origins;
}

std::string split_change(const SplitHashes& before, const SplitHashes& now, Split split) {
  const std::optional<DataHash>&old = hash_of(before, split), &present = hash_of(now, split);
  if (!old || !present || *old == *present) return "";
  const char* name = name_of(split);
  if (old->size != present->size) {
    return fmt::format("{} data of a different size ({}, which was {})", name, present->size,
                       old->size);
  }
  std::vector<std::string> parts;
  if (old->inputs != present->inputs) parts.push_back("inputs");
  if (old->answers != present->answers) parts.push_back("labels or targets");
  return fmt::format("other {} {}", name, join(parts, " and "));
}

std::vector<std::string> RunOrigins::changes_since(const RunOrigins& saved) const {
  std::vector<std::string> changes;
  for (const Split split : kSplits) {
    const std::string change = split_change(saved.data, data, split);
    if (!change.empty()) changes.push_back(change);
  }
  const bool is_known = saved.data.train.has_value();
  if (!is_known && saved.train_size && train_size && *saved.train_size != *train_size) {
    changes.push_back(
        fmt::format("{} training examples, which were {}", *train_size, *saved.train_size));
  }
  const std::string renamed = compare_columns(saved.columns, columns).renamed;
  if (!renamed.empty()) changes.push_back("other names (" + renamed + ")");
  if (saved.teacher && teacher && saved.teacher->hash != teacher->hash) {
    changes.push_back(fmt::format("another teacher (of step {}, which was {})", teacher->step,
                                  saved.teacher->step));
  }
  return changes;
}

std::string RunOrigins::unknown_in(const RunOrigins& saved) const {
  std::vector<std::string> parts;
  if (!saved.data.train) parts.push_back("data");
  if (!saved.teacher && teacher) parts.push_back("teacher");
  if (parts.empty()) return "";
  return fmt::format(
      "the checkpoint has no hash of its {}, because an earlier version wrote it: later changes "
      "there go unnoticed",
      join(parts, " and its "));
}

}  // namespace lacuna
