// Loads the file's values into a model, after a comparison without errors.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <variant>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/find_pattern.hpp"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/param/saved_parameter.hpp"
#include "lacuna/framework/train/weights/weight_comparison.hpp"

namespace lacuna {
namespace {

// Above this density a mask without a pattern is stored as a mask: products of csr do not pay.
constexpr double kMostCsr = 0.3;

BitMask nonzeros(const Tensor& values) {
  BitMask mask = BitMask::zeros(values.numel());
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (values.data()[i] != 0.0f) mask.set(i);
  }
  return mask;
}

const Layout& layout_of(const Parameter& parameter, const PatternShape& shape, int64_t nnz) {
  const bool is_convolution = parameter.use == WeightUse::Convolution;
  if (parameter.is_linear_weight() && shape.is_structured()) return layout_for(shape);
  const bool is_sparse =
      static_cast<double>(nnz) <= kMostCsr * static_cast<double>(parameter.numel());
  const bool has_csr = is_convolution || parameter.is_linear_weight();
  return has_csr && is_sparse ? csr_layout() : masked_layout();
}

// A layer whose weight is all zeros passes nothing on: this is rarely intended.
class EmptyWeights {
 public:
  void look_at(const Parameter& parameter, const Pattern& pattern, const StateDict& state) {
    const std::string& name = parameter.name();
    const bool is_weight = parameter.use != WeightUse::Other && parameter.numel() > 0;
    if (!is_weight) return;
    if (pattern.nnz() == 0) {
      masks_.push_back(name);
    } else if (state.contains(name) && nonzeros(state.get<Tensor>(name)).count() == 0) {
      values_.push_back(name);
    }
  }
  void tell(const std::string& path, std::vector<std::string>& warnings) const {
    if (!masks_.empty()) {
      warnings.push_back(fmt::format(
          "'{}': {} with only zeros, so no weight is left there: {}; in a mask, 1 means kept", path,
          masks_.size() == 1 ? "a mask" : "masks", join(masks_, ", ")));
    }
    if (!values_.empty()) {
      warnings.push_back(fmt::format("'{}': {} with only zeros: {}", path,
                                     values_.size() == 1 ? "a weight" : "weights",
                                     join(values_, ", ")));
    }
  }

 private:
  std::vector<std::string> masks_, values_;
};

// Of a parameter whose values, and mask where there is one, are in a state.
struct Found {
  BitMask mask;
  bool is_stated = false;  // the file has the mask; else it is that of the zeros
};

}  // namespace

std::string first_not_finite(const StateDict& state) {
  for (const auto& [name, value] : state.values()) {
    const auto* values = std::get_if<Tensor>(&value);
    if (values == nullptr) continue;
    if (!std::ranges::all_of(values->storage(), [](float v) { return std::isfinite(v); })) {
      return name;
    }
  }
  return "";
}

void require_finite(const StateDict& state, const std::string& path) {
  const std::string name = first_not_finite(state);
  if (name.empty()) return;
  throw CheckpointError(fmt::format(
      "'{}' has values that are NaN or infinite (in '{}'): nothing can be computed with "
      "them; take weights without, or leave that name out with `skip` of init_from",
      name, path));
}

void require_variances(const StateDict& state, const std::string& path) {
  for (const auto& [name, value] : state.values()) {
    const auto* values = std::get_if<Tensor>(&value);
    if (values == nullptr || !name.ends_with("running_var")) continue;
    const std::span<const float> variance = values->storage();
    const auto negative = std::ranges::find_if(variance, [](float v) { return v < 0.0f; });
    if (negative == variance.end()) continue;
    std::string dotted = name;  // in a checkpoint a buffer is module/buffer
    std::ranges::replace(dotted, '/', '.');
    throw CheckpointError(
        fmt::format("'{}' has a variance below 0: {:g} in '{}', channel {}; it is damaged, or not "
                    "a file of this model",
                    path, *negative, dotted, negative - variance.begin()));
  }
}

StateDict WeightComparison::read_values() const {
  StateDict state;
  for (const std::string& name : wanted_) {
    const std::string& original = in_file_.at(name);
    const std::string mask = name + "_mask";
    const bool has_mask = !stored_.items().at(original).mask.empty();
    if (has_mask && is_skipped(stored_.items().at(original).mask)) {
      StateDict with_mask;
      stored_.copy(original, name, with_mask);
      state.set(name, with_mask.get<Tensor>(name));
    } else {
      stored_.copy(original, name, state);
    }
    if (!is_stored_transposed(name)) continue;
    state.set(name, transposed(state.get<Tensor>(name)));
    if (state.contains(mask)) state.set(mask, transposed(state.get<ByteArray>(mask)));
  }
  require_finite(state, stored_.path());
  require_variances(state, stored_.path());
  return state;
}

// Set if the file, or the request, makes a weight sparse; else null. A checkpoint's parameters keep
// what they were saved in.
PatternPtr WeightComparison::pattern_of(const Parameter& parameter, const StateDict& state,
                                        LoadedWeights& loaded) const {
  const std::string& name = parameter.name();
  const bool is_flat = state.contains(name);
  const bool is_stated = state.contains(name + "_mask");
  const bool is_weight =
      parameter.use == WeightUse::Linear || parameter.use == WeightUse::Convolution;
  if (!is_flat || (is_stated && !is_foreign_)) return nullptr;
  if (!is_stated && !(names_.find_pattern && is_weight)) return nullptr;
  const Found found{.mask = is_stated
                                ? BitMask::from_bytes(state.get<ByteArray>(name + "_mask").values)
                                : nonzeros(state.get<Tensor>(name)),
                    .is_stated = is_stated};
  const int64_t nnz = found.mask.count(), numel = parameter.numel();
  if (nnz == numel || (nnz == 0 && !is_stated)) {
    if (names_.find_pattern && numel > 0) {
      loaded.notes.push_back(
          fmt::format("{}: {}, stays dense", name, nnz == 0 ? "nothing but zeros" : "no zeros"));
    }
    return nullptr;
  }
  const PatternShape shape =
      names_.find_pattern ? find_pattern(parameter.shape(), found.mask) : PatternShape();
  const Layout& layout = layout_of(parameter, shape, nnz);
  loaded.notes.push_back(
      fmt::format("{}: {}, {} of {} are nonzeros ({}), stored as {}", name,
                  shape.is_structured() ? shape.description() : "unstructured", nnz, numel,
                  found.is_stated ? "by the file's mask" : "found from its zeros", layout.name()));
  loaded.masked.push_back(name);
  return Pattern::make(layout, parameter.shape(), found.mask);
}

// The conversions, in one line; empty without any.
std::string WeightComparison::conversions() const {
  std::map<std::string, std::vector<std::string>> by_type;
  for (const std::string& name : wanted_) {
    const std::string& type = stored_.items().at(in_file_.at(name)).stored_as;
    if (!type.empty()) by_type[type].push_back(name);
  }
  std::vector<std::string> parts;
  for (const auto& [type, names] : by_type) {
    parts.push_back(
        fmt::format("{} from {} ({}{})", names.size(), type, names.front(),
                    names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1)));
  }
  if (parts.empty()) return {};
  return fmt::format("'{}': arrays were converted to F32, {}{}", stored_.path(), join(parts, ", "),
                     by_type.contains("F64") ? "; those from F64 are rounded" : "");
}

std::vector<Int8Weight> WeightComparison::int8_weights() const {
  std::vector<Int8Weight> weights;
  for (const std::string& name : wanted_) {
    const std::string& original = in_file_.at(name);
    if (!stored_.items().at(original).is_int8) continue;
    weights.push_back(stored_.int8(original, is_stored_transposed(name)));
    weights.back().name = name;
  }
  return weights;
}

LoadedWeights WeightComparison::load() const {
  const StateDict state = read_values();
  LoadedWeights loaded;
  if (const std::string line = conversions(); !line.empty()) loaded.notes.push_back(line);
  std::vector<std::pair<ParameterPtr, PatternPtr>> patterns;  // all of them, or an error
  for (const ParameterPtr& parameter : model_.parameters()) {
    if (is_skipped(parameter->name())) continue;
    const SavedParameter saved(state, parameter->name());
    PatternPtr pattern = pattern_of(*parameter, state, loaded);
    if (pattern == nullptr) pattern = saved.pattern(is_foreign_ ? &dense_layout() : nullptr);
    patterns.emplace_back(parameter, pattern);
  }
  EmptyWeights empty;
  for (const auto& [parameter, pattern] : patterns) {
    if (is_foreign_) empty.look_at(*parameter, *pattern, state);
    SavedParameter(state, parameter->name()).restore(*parameter, pattern);
  }
  for (const auto& [name, values] : model_.buffers()) {
    if (!is_skipped(name)) *values = state.get<Tensor>(name).clone();
  }
  empty.tell(stored_.path(), loaded.warnings);
  return loaded;
}

}  // namespace lacuna
