#include "lacuna/framework/data/data_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/first_batch.hpp"
#include "lacuna/framework/data/sampling.h"
#include "lacuna/framework/io/log.h"

namespace lacuna {

DataSplits with_named_paths(const Config& data, const std::vector<std::string>& keys,
                            const std::function<DataSplits()>& load) {
  std::vector<Config> paths;
  for (const std::string& key : keys) {
    const Config path = data.peek(key);
    if (path.is_scalar() && !path.is_number()) paths.push_back(path);
  }
  for (const Config& path : paths) {
    if (path.text().empty()) path.fail("a path");
  }
  try {
    return load();
  } catch (const DataError& error) {
    const std::string what = error.what();
    for (const Config& path : paths) {
      std::error_code unknown;
      const bool is_there = std::filesystem::exists(path.text(), unknown);
      if (is_there || what.find(path.text()) == std::string::npos) continue;
      const std::string where = path.where();
      const std::string key = where.substr(where.rfind(' ') + 1);
      const bool is_set = where.starts_with("--set");
      throw DataError(fmt::format("{} (set by {}{})", error.what(), where,
                                  is_set ? "" : "; --set " + key + "=PATH gives another one"));
    }
    throw;
  }
}

std::optional<std::string> path_of_split(const Config& data, const std::string& key) {
  const Config node = data.get(key);
  if (node.is_null() || node.is_number()) return std::nullopt;
  if (!node.is_scalar()) node.fail("the path of a file, or a number of examples to hold out");
  return node.as<std::string>();
}

void require_no_image_keys(const Config& data, const Dataset& train) {
  const bool has_tokens = train.vocabulary_size() > 0;
  if (!has_tokens && !gives_tensor(train, kFeatureIds)) return;
  for (const char* key : {"normalize", "augment"}) {
    if (!data.has(key)) continue;
    data.get(key).error(fmt::format("this key does not apply to inputs that are {}; leave it out",
                                    has_tokens ? "tokens" : "sparse examples"));
  }
}

void require_plausible_labels(const Config& data, const Dataset& train) {
  constexpr int64_t kMany = 10000;
  const bool is_read_off = data.has("num_classes") && data.required<int64_t>("num_classes") == 0 &&
                           train.vocabulary_size() == 0;
  if (!is_read_off || train.num_classes() <= std::max(kMany, 10 * train.size())) return;
  data.error(
      fmt::format("the labels of {} go up to {}: if they are numbers to predict, set task: "
                  "regression; if they are classes, give num_classes",
                  plural(train.size(), "training example"), train.num_classes() - 1));
}

void report_label_gaps(const Config& data, std::span<const int64_t> labels, int64_t num_classes,
                       const std::string& more) {
  if (!data.has("num_classes") || data.required<int64_t>("num_classes") != 0) return;
  std::vector<bool> is_used(static_cast<size_t>(num_classes));
  for (const int64_t label : labels) is_used[static_cast<size_t>(label)] = true;
  constexpr size_t kMost = 8;
  std::vector<std::string> gaps;
  size_t count = 0;
  for (size_t label = 0; label < is_used.size(); ++label) {
    if (is_used[label]) continue;
    if (++count <= kMost) gaps.push_back(std::to_string(label));
  }
  if (count == 0) return;
  log_warning(fmt::format(
      "{}: no training example has the label {}{}, and the model can predict it; number the "
      "classes 0, 1, 2, … without gaps, or give num_classes: {} if they are meant so{}{}",
      data.where(), join(gaps, ", "),
      count > kMost ? fmt::format(" and {} more", count - kMost) : "", num_classes,
      more.empty() ? "" : ", ", more));
}

void require_number_of_classes(const Config& data, const Dataset& train) {
  if (train.num_classes() == 0 || train.num_classes() == train.vocabulary_size()) return;
  const auto wanted = data.optional<int64_t>("num_classes");
  if (!wanted || *wanted == 0 || *wanted == train.num_classes()) return;
  data.get("num_classes")
      .error(fmt::format("is {}, and the data has {}; leave this key out", *wanted,
                         plural(train.num_classes(), "class", "classes")));
}

SplitHashes hash_splits(const Config& data, const DataSplits& splits) {
  constexpr HashLimits kLimits;
  const auto hash = [&](const std::shared_ptr<const Dataset>& split) -> std::optional<DataHash> {
    if (split == nullptr || split->size() == 0) return std::nullopt;
    const auto limit = split == splits.train ? data.optional<int64_t>("limit") : std::nullopt;
    return split->hash(std::min(limit.value_or(split->size()), split->size()), kLimits);
  };
  return {.train = hash(splits.train),
          .validation = hash(splits.validation),
          .test = hash(splits.test)};
}

void report_lost_classes(const Config& data, const Dataset& train,
                         std::span<const int64_t> staying) {
  if (!data.has("limit") || !train.has_labels_at_hand() || train.num_classes() == 0) return;
  const std::vector<int64_t> labels = all_labels(train);
  const auto classes = static_cast<size_t>(train.num_classes());
  std::vector<bool> before(classes), after(classes);
  for (const int64_t label : labels) before[static_cast<size_t>(label)] = true;
  for (const int64_t i : staying) {
    after[static_cast<size_t>(labels[static_cast<size_t>(i)])] = true;
  }
  const std::vector<std::string> names = train.class_names();
  std::vector<std::string> lost;
  for (size_t label = 0; label < classes; ++label) {
    if (!before[label] || after[label]) continue;
    lost.push_back(names.empty() ? std::to_string(label) : names[label]);
  }
  if (lost.empty()) return;
  constexpr size_t kMost = 8;
  const size_t shown = std::min(lost.size(), kMost);
  log_warning(
      fmt::format("{}: the first examples, which are trained on, do not have the classes {}{}; "
                  "shuffle the files, or give a larger limit",
                  data.get("limit").where(), join(std::span(lost).first(shown), ", "),
                  shown < lost.size() ? fmt::format(" and {} more", lost.size() - shown) : ""));
}

}  // namespace lacuna
