#include "lacuna/framework/param/saved_parameter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr std::string_view kMaskEnding = "_mask", kIndexEnding = "/indptr";

}  // namespace

void save_parameter(const Parameter& parameter, StateDict& state) {
  const std::string& name = parameter.name();
  const Pattern& pattern = *parameter.pattern();
  if (pattern.stores_every_position()) {
    state.set(name, parameter.to_dense());
    if (!pattern.is_dense()) state.set(name + "_mask", parameter.mask());
    return;
  }
  state.set(name + "/values", parameter.compacted(parameter.values()));
  const Positions positions = pattern.positions();
  state.set(name + "/indptr",
            std::vector<int64_t>(positions.row_begin().begin(), positions.row_begin().end()));
  state.set(name + "/indices",
            std::vector<uint32_t>(positions.column().begin(), positions.column().end()));
  const auto sizes = parameter.shape().sizes();
  state.set(name + "/shape", std::vector<int64_t>(sizes.begin(), sizes.end()));
  state.set(name + "/layout", std::string(pattern.layout().name()));
}

std::vector<std::string> saved_parameter_names(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, value] : state.values()) {
    if (name.ends_with(kIndexEnding)) {
      names.push_back(name.substr(0, name.size() - kIndexEnding.size()));
    } else if (std::holds_alternative<Tensor>(value) && name.find('/') == std::string::npos) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

void SavedParameter::fail(const std::string& problem) const {
  throw CheckpointError("the parameter '" + name_ + "' in the checkpoint: " + problem);
}

SavedParameter::SavedParameter(const StateDict& state, std::string name)
    : state_(&state), name_(std::move(name)) {
  if (state.contains(name_ + std::string(kIndexEnding))) {
    read_compressed();
  } else {
    read_flat();
  }
}

template <class T>
const T& SavedParameter::entry(const char* key, const char* what) const {
  const auto found = state_->values().find(name_ + "/" + key);
  const T* value = found == state_->values().end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr) {
    fail("expected '" + std::string(key) + "', " + what + ", found " +
         (found == state_->values().end() ? "none" : "another type"));
  }
  return *value;
}

void SavedParameter::read_compressed() {
  indices_ = &entry<std::vector<uint32_t>>("indices", "the columns as uint32");
  indptr_ = &entry<std::vector<int64_t>>("indptr", "the row offsets as int64");
  values_ = &entry<Tensor>("values", "an array of float32");
  const auto& sizes = entry<std::vector<int64_t>>("shape", "a list of sizes");
  const auto& layout = entry<std::string>("layout", "a layout's name");
  layout_ = find_layout(layout);
  if (layout_ == nullptr) {
    fail("its layout '" + layout + "' is unknown; " + suggest_name(layout, layout_names()));
  }
  nnz_ = static_cast<int64_t>(indices_->size());
  if (values_->shape() != Shape{nnz_}) {
    fail(fmt::format("expected a value for each of its {} indices, found values of shape {}", nnz_,
                     values_->shape().to_string()));
  }
  try {
    shape_ = Shape(std::span<const int64_t>(sizes));
    positions();
  } catch (const ShapeError& error) {
    fail(error.what());
  }
}

void SavedParameter::read_flat() {
  const auto found = state_->values().find(name_);
  values_ = found == state_->values().end() ? nullptr : std::get_if<Tensor>(&found->second);
  if (values_ == nullptr) fail("expected an array of float32 or a compressed group, found neither");
  shape_ = values_->shape();
  layout_ = &dense_layout();
  nnz_ = shape_.numel();
  const std::string mask_name = name_ + std::string(kMaskEnding);
  if (!state_->contains(mask_name)) return;
  layout_ = &masked_layout();
  mask_ = &state_->get<ByteArray>(mask_name);
  if (mask_->shape != shape_) {
    fail("'" + mask_name + "' has shape " + mask_->shape.to_string() + ", its parameter " +
         shape_.to_string());
  }
  nnz_ = BitMask::from_bytes(mask_->values).count();
}

int64_t SavedParameter::value_bytes() const { return values_->bytes(); }

int64_t SavedParameter::index_bytes() const {
  if (is_compressed()) {
    return static_cast<int64_t>(indptr_->size() * sizeof(int64_t) +
                                indices_->size() * sizeof(uint32_t));
  }
  return mask_ == nullptr ? 0 : (shape_.numel() + 7) / 8;
}

Positions SavedParameter::positions() const {
  if (is_compressed()) return Positions(shape_, *indptr_, *indices_);
  if (mask_ == nullptr) return Positions::all(shape_);
  return Positions::of(shape_, BitMask::from_bytes(mask_->values));
}

PatternPtr SavedParameter::pattern(const Layout* layout) const {
  if (layout == nullptr) layout = layout_;
  if (layout == &dense_layout()) {
    if (nnz_ == shape_.numel()) return Pattern::dense(shape_);
    layout = &masked_layout();
  }
  if (layout == &masked_layout() && mask_ != nullptr) {
    return Pattern::masked(shape_, BitMask::from_bytes(mask_->values));
  }
  try {
    return Pattern::make(*layout, shape_, positions());
  } catch (const ShapeError& error) {
    fail(error.what());
  }
}

void SavedParameter::require_fit() const {
  if (!is_compressed()) return;
  // Patterned layouts have room for every group of a shape, and no model confirms the shape here.
  constexpr int64_t kMostForEach = 1024;
  if (layout_->pattern_shape().is_structured() && shape_.numel() / kMostForEach > nnz_) {
    fail(fmt::format("its shape {} is not one of a matrix in layout '{}' with {} nonzeros",
                     shape_.to_string(), layout_->name(), nnz_));
  }
  pattern();
}

void SavedParameter::restore(Parameter& parameter, const PatternPtr& pattern) const {
  // The managing algorithm continues as before: how long it uses a pattern is not saved.
  parameter.set_pattern(pattern->with_lifetime(parameter.pattern()->lifetime()));
  if (is_compressed()) {
    parameter.assign_elements(*values_);
  } else {
    parameter.assign(*values_);
  }
}

}  // namespace lacuna
