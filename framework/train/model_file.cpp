#include "lacuna/framework/train/model_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/model/presets/foreign_names.h"
#include "lacuna/framework/nn/tied_weight.h"
#include "lacuna/framework/param/saved_parameter.h"
#include "lacuna/framework/train/run_folder.h"
#include "lacuna/framework/train/stored_values.hpp"

namespace lacuna {
namespace {

void require_stars(const WeightNames& names) {
  for (const auto& [from, to] : names.rename) {
    if (std::ranges::count(to, '*') <= std::ranges::count(from, '*')) continue;
    throw ConfigError(fmt::format(
        "rename: '{}' has more stars than '{}', and each stands for what one of these matched", to,
        from));
  }
}

// Values that no training can start from, said where the file is known.
void require_finite(const StateDict& state, const std::string& path) {
  for (const auto& [name, value] : state.values()) {
    const auto* values = std::get_if<Tensor>(&value);
    if (values == nullptr) continue;
    if (std::ranges::all_of(values->storage(), [](float v) { return std::isfinite(v); })) continue;
    throw CheckpointError(
        fmt::format("'{}' has values that are NaN or infinite (in '{}')", name, path));
  }
}

// A model and a file's values, put side by side by name.
class Comparison {
 public:
  Comparison(Module& model, const StoredValues& stored, const WeightNames& names)
      : model_(model), stored_(stored), names_(names), is_foreign_(is_safetensors(stored.path())) {
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
    refuse_differences();
  }

  void load() const {
    StateDict state;
    for (const std::string& name : wanted_) {
      stored_.copy(in_file_.at(name), name, state);
      if (is_stored_transposed(name)) state.set(name, transposed(state.get<Tensor>(name)));
    }
    require_finite(state, stored_.path());
    std::vector<std::pair<ParameterPtr, PatternPtr>> patterns;  // all of them, or an error
    for (const ParameterPtr& parameter : model_.parameters()) {
      if (is_skipped(parameter->name())) continue;
      patterns.emplace_back(parameter, SavedParameter(state, parameter->name()).pattern());
    }
    for (const auto& [parameter, pattern] : patterns) {
      SavedParameter(state, parameter->name()).restore(*parameter, pattern);
    }
    for (const auto& [name, values] : model_.buffers()) {
      if (!is_skipped(name)) *values = state.get<Tensor>(name).clone();
    }
  }

 private:
  std::string renamed(const std::string& name) const {
    for (const auto& [from, to] : names_.rename) {
      if (const auto result = rename_by_glob(from, to, name)) return *result;
    }
    return name;
  }

  // Weights that others own, under the names that they would have here.
  void find_tied() {
    for (Module* module : model_.modules()) {
      const auto* tied = dynamic_cast<const TiedWeight*>(module);
      if (tied != nullptr) tied_[module->path() + ".weight"] = tied->tied_weight()->name();
    }
  }

  void rename() {
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

  void take(const std::string& name, const std::string& original) {
    const auto [taken, is_new] = in_file_.try_emplace(name, original);
    if (is_new) return;
    lines_.push_back(fmt::format("'{}' and '{}' of the file would both be '{}'", taken->second,
                                 original, taken->first));
  }

  // Of GPT-2's weights by the first that is not square: those of a file are all stored one way.
  bool has_conv1d() const {
    for (const ParameterPtr& parameter : model_.parameters()) {
      const Shape& shape = parameter->shape();
      const auto found = in_file_.find(parameter->name());
      if (found == in_file_.end() || !is_conv1d_weight(parameter->name()) || shape.rank() != 2) {
        continue;
      }
      const Shape& stored = stored_.items().at(found->second).shape;
      if (shape[0] != shape[1] && stored == shape) return false;
      if (shape[0] != shape[1] && stored == Shape{shape[1], shape[0]}) return true;
    }
    return true;
  }

  bool is_stored_transposed(const std::string& name) const {
    return stores_conv1d_ && is_conv1d_weight(name) &&
           stored_.items().at(in_file_.at(name)).shape.rank() == 2;
  }

  bool is_skipped(const std::string& name) const {
    return std::ranges::any_of(names_.skip,
                               [&](const std::string& glob) { return glob_match(glob, name); });
  }

  void compare(const std::string& name, const Shape& shape, bool is_buffer) {
    in_model_.push_back(name);
    if (is_skipped(name)) return;
    const auto found = in_file_.find(name);
    if (found == in_file_.end()) {
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
      lines_.push_back(
          fmt::format("'{}' is {} in the file{}; expected F32", name, item.type, there));
    } else if (is_buffer && item.is_compressed) {
      lines_.push_back(
          fmt::format("'{}' is a buffer in the model, a parameter of nonzeros alone in the file{}",
                      name, there));
    }
  }

  void find_left_over() {
    for (const auto& [name, original] : in_file_) {
      if (std::ranges::find(in_model_, name) != in_model_.end() || is_skipped(name)) continue;
      if (is_bookkeeping(name) || is_bookkeeping(original)) continue;
      const auto tied = tied_.find(name);
      if (is_foreign_ && tied != tied_.end()) {
        compare_tied(original, tied->second);
        continue;
      }
      lines_.push_back(fmt::format("'{}' {} is in the file only{}", name,
                                   stored_.items().at(original).shape.to_string(),
                                   original == name ? "" : " (there '" + original + "')"));
    }
  }

  // A head that shares its weight in the model may stand in the file all the same.
  void compare_tied(const std::string& original, const std::string& owner) {
    const auto shared = in_file_.find(owner);
    if (shared == in_file_.end() || are_equal(original, shared->second)) return;
    lines_.push_back(
        fmt::format("'{}' has values of its own in the file, but is tied to '{}' in the model",
                    original, owner));
  }

  void compare_doubles() {
    for (const auto& [one, other] : doubles_) {
      if (are_equal(one, other)) continue;
      lines_.push_back(
          fmt::format("'{}' and '{}' of the file mean the same, and differ", one, other));
    }
  }

  // Bit for bit. *Cost:* reads both.
  bool are_equal(const std::string& one, const std::string& other) const {
    const StoredValues::Item &a = stored_.items().at(one), &b = stored_.items().at(other);
    if (a.shape != b.shape || !a.type.empty() || !b.type.empty()) return false;
    StateDict state;
    stored_.copy(one, "one", state);
    stored_.copy(other, "other", state);
    const auto &x = state.get<Tensor>("one"), &y = state.get<Tensor>("other");
    return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.numel()) * sizeof(float)) == 0;
  }

  void require_skips_match() const {
    std::vector<std::string> all = in_model_;
    for (const auto& [name, original] : in_file_) all.push_back(name);
    for (const std::string& glob : names_.skip) {
      if (std::ranges::any_of(all, [&](const auto& name) { return glob_match(glob, name); })) {
        continue;
      }
      throw ConfigError(fmt::format("skip: '{}' matches no name of the model nor of '{}'; {}", glob,
                                    stored_.path(), suggest_name(glob, in_model_)));
    }
  }

  // A rule that changes nothing is no mistake where everything fits (a prefix that is not there).
  void refuse_differences() const {
    if (lines_.empty()) return;
    std::string text = fmt::format("the values in '{}' are of another model: {}", stored_.path(),
                                   join(lines_, "; "));
    for (const auto& [from, to] : names_.rename) {
      const auto matches = [&](const auto& entry) {
        return rename_by_glob(from, to, entry.first).has_value();
      };
      if (std::ranges::any_of(stored_.items(), matches)) continue;
      text += fmt::format("; rename: '{}' matches no name in the file", from);
    }
    throw CheckpointError(
        text + "; `rename` changes names of the file, `skip` leaves the model's as they are");
  }

  Module& model_;
  const StoredValues& stored_;
  const WeightNames& names_;
  bool is_foreign_;                          // not lacuna's own file
  bool stores_conv1d_ = false;               // GPT-2's weights are [in, out] in it
  std::map<std::string, std::string> tied_;  // "lm_head.weight" → its owner's name
  std::vector<std::pair<std::string, std::string>> doubles_;  // two names in the file for one
  std::map<std::string, std::string> in_file_;  // names in the file, by what they are changed to
  std::vector<std::string> in_model_;
  std::vector<std::string> wanted_;  // in both, and not skipped
  std::vector<std::string> lines_;   // what does not fit
};

}  // namespace

void save_model(const std::string& path, const Module& model) {
  Checkpoint checkpoint;
  checkpoint.state.merge("model", model.state_dict());
  write_checkpoint(path, checkpoint);
}

void load_weights(const std::string& file_or_run_folder, Module& model, const WeightNames& names) {
  if (names.empty() && !is_safetensors(file_or_run_folder)) {
    const CheckpointFile file = find_checkpoint(file_or_run_folder);
    const Checkpoint checkpoint = file.read();
    const StateDict state = checkpoint.state.below("model");
    require_finite(state, file.path());
    try {
      model.load_state_dict(state);
    } catch (const CheckpointError& error) {
      throw CheckpointError(fmt::format("{} (in '{}')", error.what(), file.path()));
    }
    return;
  }
  require_stars(names);
  const std::unique_ptr<StoredValues> stored = open_stored_values(file_or_run_folder);
  Comparison(model, *stored, names).load();
}

}  // namespace lacuna
