#include "lacuna/framework/train/weights/weight_comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/nn/other_model_error.hpp"
#include "lacuna/framework/nn/tied_weight.h"

namespace lacuna {
WeightComparison::WeightComparison(Module& model, const StoredValues& stored,
                                   const WeightNames& names)
    : model_(model), stored_(stored), names_(names), is_foreign_(stored.is_foreign()) {
  find_tied();
  rename();
  stores_conv1d_ = is_foreign_ && has_conv1d();
  for (const ParameterPtr& parameter : model.parameters()) {
    compare(parameter->name(), parameter->shape(), false);
  }
  for (const auto& [name, values] : model.buffers()) compare(name, values->shape(), true);
  find_left_over();
  compare_doubles();
  require_skips_match();
  name_nearest();
  refuse_differences();
}

std::string WeightComparison::renamed(const std::string& name) const {
  for (const auto& [from, to] : names_.rename) {
    if (const auto result = rename_by_glob(from, to, name)) return *result;
  }
  return name;
}

// Weights that others own, under the names that they would have here.
void WeightComparison::find_tied() {
  for (Module* module : model_.modules()) {
    const auto* tied = dynamic_cast<const TiedWeight*>(module);
    if (tied != nullptr) tied_[module->path() + ".weight"] = tied->tied_weight()->name();
  }
}

void WeightComparison::rename() {
  std::set<std::string> known;  // names of the model
  for (const ParameterPtr& parameter : model_.parameters()) known.insert(parameter->name());
  for (const auto& [name, values] : model_.buffers()) known.insert(name);
  for (const auto& [name, owner] : tied_) known.insert(name);
  std::vector<std::string> others;
  for (const auto& [original, item] : stored_.items()) {
    const std::string name = renamed(original);
    if (is_foreign_ && !known.contains(name)) {
      others.push_back(original);
    } else {
      take(name, original);
    }
  }
  // A name that the model has itself comes before one that means it.
  for (const std::string& original : others) {
    const std::string name = renamed(original);
    const std::optional<std::string> meant = foreign_name(name, known);
    if (!meant) {
      take(name, original);
    } else if (!in_file_.try_emplace(*meant, original).second) {
      doubles_.emplace_back(original, in_file_.at(*meant));
    }
  }
}

void WeightComparison::take(const std::string& name, const std::string& original) {
  const auto [taken, is_new] = in_file_.try_emplace(name, original);
  if (is_new) return;
  lines_.push_back(fmt::format("'{}' and '{}' of the file would both be '{}'", taken->second,
                               original, taken->first));
}

// Of GPT-2's weights by the first that is not square: those of a file are all stored one way. Its
// files always have one; where all are square, names alone are no reason to transpose.
bool WeightComparison::has_conv1d() const {
  for (const ParameterPtr& parameter : model_.parameters()) {
    const Shape& shape = parameter->shape();
    const auto found = in_file_.find(parameter->name());
    if (found == in_file_.end() || !is_conv1d_weight(parameter->name()) || shape.rank() != 2) {
      continue;
    }
    const Shape& stored = stored_.items().at(found->second).shape;
    if (shape[0] != shape[1] && stored == shape) return false;
    if (shape[0] != shape[1] && stored.rank() == 2 && stored[0] == shape[1]) return true;
  }
  return false;
}

bool WeightComparison::is_stored_transposed(const std::string& name) const {
  return stores_conv1d_ && is_conv1d_weight(name) &&
         stored_.items().at(in_file_.at(name)).shape.rank() == 2;
}

bool WeightComparison::is_skipped(const std::string& name) const {
  return std::ranges::any_of(names_.skip,
                             [&](const std::string& glob) { return glob_match(glob, name); });
}

void WeightComparison::compare(const std::string& name, const Shape& shape, bool is_buffer) {
  in_model_.push_back(name);
  if (is_skipped(name)) return;
  const auto found = in_file_.find(name);
  if (found == in_file_.end()) {
    missing_.emplace_back(name, shape);
    lines_.push_back(fmt::format("'{}' {} is in the model only", name, shape.to_string()));
    return;
  }
  wanted_.push_back(name);
  const StoredValues::Item& item = stored_.items().at(found->second);
  std::string there = found->second == name ? "" : " as '" + found->second + "'";
  const bool is_exchanged = is_stored_transposed(name) && shape.rank() == 2;
  if (is_exchanged) there += " (stored [in, out], as GPT-2's are)";
  if (item.shape != (is_exchanged ? Shape{shape[1], shape[0]} : shape)) {
    lines_.push_back(fmt::format("'{}' is {} in the model, {} in the file{}", name,
                                 shape.to_string(), item.shape.to_string(), there));
  } else if (!item.type.empty()) {
    lines_.push_back(fmt::format("'{}' is {} in the file{}; expected F32, F64, F16 or BF16", name,
                                 item.type, there));
  } else if (is_buffer && item.is_compressed) {
    lines_.push_back(
        fmt::format("'{}' is a buffer in the model, a parameter with only nonzeros in the file{}",
                    name, there));
  }
}

void WeightComparison::find_left_over() {
  for (const auto& [name, original] : in_file_) {
    if (std::ranges::find(in_model_, name) != in_model_.end() || is_skipped(name)) continue;
    const int rank = stored_.items().at(original).shape.rank();
    if (is_bookkeeping(name, rank) || is_bookkeeping(original, rank)) continue;
    const auto tied = tied_.find(name);
    if (is_foreign_ && tied != tied_.end()) {
      compare_tied(original, tied->second);
      continue;
    }
    left_over_.push_back(name);
    const StoredValues::Item& item = stored_.items().at(original);
    lines_.push_back(fmt::format("'{}' {} is in the file only{}{}", name, item.shape.to_string(),
                                 item.type.empty() ? "" : ", as " + item.type,
                                 original == name ? "" : " (there '" + original + "')"));
  }
}

// A head that shares its weight in the model may still be in the file.
void WeightComparison::compare_tied(const std::string& original, const std::string& owner) {
  const auto shared = in_file_.find(owner);
  if (shared == in_file_.end() || are_equal(original, shared->second)) return;
  lines_.push_back(fmt::format(
      "'{}' has values of its own in the file, but is tied to '{}' in the model", original, owner));
}

void WeightComparison::compare_doubles() {
  for (const auto& [one, other] : doubles_) {
    if (are_equal(one, other)) continue;
    lines_.push_back(
        fmt::format("'{}' and '{}' of the file are the same parameter, but differ", one, other));
  }
}

// Bit for bit. *Cost:* reads both.
bool WeightComparison::are_equal(const std::string& one, const std::string& other) const {
  const StoredValues::Item &a = stored_.items().at(one), &b = stored_.items().at(other);
  if (a.shape != b.shape || !a.type.empty() || !b.type.empty()) return false;
  StateDict state;
  stored_.copy(one, "one", state);
  stored_.copy(other, "other", state);
  const auto &x = state.get<Tensor>("one"), &y = state.get<Tensor>("other");
  return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.numel()) * sizeof(float)) == 0;
}

void WeightComparison::require_skips_match() const {
  std::vector<std::string> all = in_model_;
  for (const auto& [name, original] : in_file_) {
    all.push_back(name);
    const std::string& mask = stored_.items().at(original).mask;
    if (!mask.empty()) all.push_back(mask);
  }
  for (const std::string& glob : names_.skip) {
    if (std::ranges::any_of(all, [&](const auto& name) { return glob_match(glob, name); })) {
      continue;
    }
    throw ConfigError(
        fmt::format("skip: '{}' matches neither a name of the model nor one in '{}'; {}", glob,
                    stored_.path(), suggest_name(glob, in_model_)));
  }
}

// To each name that the file lacks the nearest of those that the model lacks: of its own shape
// where there is one, for another could not take its place.
void WeightComparison::name_nearest() {
  constexpr size_t kMostCompared = 100'000;  // pairs of names, each some microseconds
  if (missing_.size() * left_over_.size() > kMostCompared) return;
  for (const auto& [name, shape] : missing_) {
    std::vector<std::string> alike;
    for (const std::string& other : left_over_) {
      if (stored_.items().at(in_file_.at(other)).shape == shape) alike.push_back(other);
    }
    std::string nearest = nearest_name(name, alike);
    if (nearest.empty()) nearest = nearest_name(name, left_over_);
    if (nearest.empty()) continue;
    nearest_.push_back(fmt::format("'{}' is nearest to the file's '{}'", name, nearest));
  }
}

// A rule without effect is not an error if everything fits (for example a missing prefix).
void WeightComparison::refuse_differences() const {
  if (lines_.empty()) return;
  std::string text = fmt::format("the values in '{}' belong to a different model: {}",
                                 stored_.path(), join_foreign(lines_, "; "));
  for (const auto& rename : names_.rename) {
    const auto matches = [&](const auto& entry) {
      return rename_by_glob(rename.from, rename.to, entry.first).has_value();
    };
    if (std::ranges::any_of(stored_.items(), matches)) continue;
    text += fmt::format("; rename: '{}' matches no name in the file", rename.from);
  }
  text += "; `rename` changes names of the file, `skip` leaves the model's as they are";
  if (!nearest_.empty()) text += "; " + join_foreign(nearest_, ", ");
  throw OtherModelError(text);
}

}  // namespace lacuna
