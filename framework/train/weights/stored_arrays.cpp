// Files of other tools, as they hold values for models.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/framework/train/weights/bitmask_weight.hpp"
#include "lacuna/framework/train/weights/foreign_files.hpp"
#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kMaskEnding = "_mask", kUnprunedEnding = "_orig", kCsrEnding = ".indptr";

class StoredArrays final : public StoredValues {
 public:
  explicit StoredArrays(const std::string& path)
      : StoredValues(path), file_(open_array_file(path)) {
    for (size_t i = 0; i < file_->arrays().size(); ++i) add(i);
    try {
      find_csr();
      find_bitmasks();
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
    int8_ = find_int8(*file_, places_, std::move(int8_));
    for (const auto& [name, weight] : int8_) {
      items_[name] = {.shape = weight.shape, .type = {}};
      items_[name].stored_as = "I8 with scales", items_[name].is_int8 = true;
      if (weight.bitmask) items_[name].mask = name + std::string(kBitmaskEnding);
    }
    for (auto found = places_.begin(); found != places_.end();) {
      found = find_owner(found->first) ? places_.erase(found) : std::next(found);
    }
    for (const auto& [name, place] : places_) items_[name] = item(name, place);
    for (const auto& [name, csr] : csr_) {
      const std::string_view mask = csr.indptr == kNone ? kBitmaskEnding : kCsrEnding;
      items_[name] = {.shape = csr.shape, .type = {}, .mask = name + std::string(mask)};
    }
  }

  bool is_foreign() const override { return true; }

  void copy(const std::string& name, const std::string& as, StateDict& state) const override {
    try {
      const auto csr = csr_.find(name);
      if (csr != csr_.end()) return copy_csr(csr->second, as, state);
      const auto int8 = int8_.find(name);
      if (int8 != int8_.end()) {
        copy_int8(int8->second, as, state);
      } else {
        state.set(as, file_->read(places_.at(name)));
      }
      const auto mask = masks_.find(name);
      if (mask != masks_.end()) {
        state.set(as + std::string(kMaskEnding), file_->read_mask(mask->second.place));
      }
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
  }

  Int8Weight int8(const std::string& name, bool is_turned) const override {
    try {
      return read_int8(*file_, int8_.at(name), is_turned);
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
  }

 private:
  struct Mask {
    std::string name;
    size_t place;
  };

  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Csr {
    std::string name;
    // Places in the file; of a bitmask `indptr` is none, and `indices` is where its bits are.
    size_t data, indices, indptr;
    Shape shape;
  };

  void add(size_t place) {
    const std::string& original = file_->arrays()[place].name;
    std::string name = original;
    std::ranges::replace(name, '/', '.');
    const auto [there, is_new] = places_.try_emplace(name, place);
    if (is_new) return;
    throw CheckpointError(
        fmt::format("'{}' and '{}' in '{}' would both be '{}'; rename one of them there",
                    file_->arrays()[there->second].name, original, path_, name));
  }

  // Arrays that together are one, as scipy has it; noted, and taken out of the others.
  void find_csr() {
    std::vector<std::string> stems;
    for (const auto& [name, place] : places_) {
      if (name.ends_with(kCsrEnding))
        stems.push_back(name.substr(0, name.size() - kCsrEnding.size()));
    }
    for (const std::string& stem : stems) {
      const auto place = [&](const char* part) {
        const auto found = places_.find(stem + part);
        return found == places_.end() ? kNone : found->second;
      };
      Csr csr{.name = stem,
              .data = place(".data"),
              .indices = place(".indices"),
              .indptr = place(".indptr"),
              .shape = {}};
      const size_t matrix = place(".shape"), tensor = place(".tensor_shape");
      if (csr.data == kNone || csr.indices == kNone || matrix == kNone) continue;
      csr.shape = read_shape(tensor == kNone ? matrix : tensor);
      if (places_.contains(stem)) {
        throw CheckpointError(fmt::format(
            "'{}' is in '{}' twice, dense and as csr; remove one of the two", stem, path_));
      }
      for (const char* part : {".data", ".indices", ".indptr", ".shape", ".tensor_shape"}) {
        places_.erase(stem + part);
      }
      csr_[stem] = csr;
    }
  }

  void find_bitmasks() {
    std::vector<std::string> stems;
    for (const auto& [name, place] : places_) {
      if (!name.ends_with(kBitmaskEnding)) continue;
      stems.push_back(name.substr(0, name.size() - kBitmaskEnding.size()));
    }
    for (const std::string& stem : stems) {
      const auto data = places_.find(stem + std::string(kDataEnding));
      const auto shape = places_.find(stem + std::string(kShapeEnding));
      if (data == places_.end() || shape == places_.end()) continue;
      if (places_.contains(stem)) {
        throw CheckpointError(fmt::format(
            "'{}' is in '{}' twice, dense and by a bitmask; remove one of the two", stem, path_));
      }
      const size_t values = data->second, bitmask = places_.at(stem + std::string(kBitmaskEnding));
      const Shape sizes = read_shape(shape->second);
      if (is_int8_weight(*file_, places_, stem, values)) {
        int8_[stem] = {.name = stem, .shape = sizes, .values = values, .bitmask = bitmask};
      } else {
        csr_[stem] = {
            .name = stem, .data = values, .indices = bitmask, .indptr = kNone, .shape = sizes};
      }
      for (const auto& part : {kDataEnding, kBitmaskEnding, kShapeEnding}) {
        places_.erase(stem + std::string(part));
      }
    }
  }

  void copy_int8(const Int8Places& weight, const std::string& as, StateDict& state) const {
    state.set(as, read_dequantized(*file_, weight));
    if (!weight.bitmask) return;
    state.set(as + std::string(kMaskEnding),
              ByteArray{.shape = weight.shape, .values = read_bitmask(*file_, weight).to_bytes()});
  }

  void copy_bitmask(const Csr& weight, const std::string& as, StateDict& state) const {
    try {
      add_bitmask_weight(weight.shape, file_->read_integers(weight.indices),
                         file_->read(weight.data), as, state);
    } catch (const DataError& error) {
      throw DataError(fmt::format("the arrays of '{}' in '{}' are not a sparse weight: {}",
                                  weight.name, path_, error.what()));
    }
  }

  Shape read_shape(size_t place) const {
    const ArrayEntry& entry = file_->arrays()[place];
    if (entry.shape.rank() != 1 || entry.shape.numel() > Shape::kMaxRank) {
      throw DataError(fmt::format("'{}' in '{}' has shape {}; expected the sizes of an array",
                                  entry.name, path_, entry.shape.to_string()));
    }
    try {
      return Shape(file_->read_integers(place));
    } catch (const ShapeError& error) {
      throw DataError(fmt::format("'{}' in '{}': {}", entry.name, path_, error.what()));
    }
  }

  // Made dense: whoever asks has compared its shape with a model's.
  void copy_csr(const Csr& csr, const std::string& as, StateDict& state) const {
    if (csr.indptr == kNone) return copy_bitmask(csr, as, state);
    const Tensor data = file_->read(csr.data);
    const std::vector<int64_t> wide = file_->read_integers(csr.indices);
    std::vector<uint32_t> indices;
    for (const int64_t index : wide) {
      if (index < 0 || index >= int64_t{1} << 32) refuse_csr(csr, "an index is not a column");
      indices.push_back(static_cast<uint32_t>(index));
    }
    if (data.numel() != static_cast<int64_t>(indices.size())) {
      refuse_csr(csr, fmt::format("{} values for {} indices", data.numel(), indices.size()));
    }
    try {
      const Positions positions(csr.shape, file_->read_integers(csr.indptr), indices);
      Tensor dense = Tensor::zeros(csr.shape);
      const float* from = data.data();
      float* into = dense.mutable_data();
      positions.for_each([&](int64_t flat) { into[flat] = *from++; });
      state.set(as, dense);
      state.set(as + std::string(kMaskEnding),
                ByteArray{.shape = csr.shape, .values = positions.to_mask().to_bytes()});
    } catch (const ShapeError& error) {
      refuse_csr(csr, std::string(error.what()) +
                          "; scipy's sum_duplicates() puts columns in order, each once");
    }
  }
  [[noreturn]] void refuse_csr(const Csr& csr, const std::string& problem) const {
    throw DataError(
        fmt::format("the arrays of '{}' in '{}' are not a csr matrix: {}; save the parts of "
                    "scipy's csr_matrix, or the weight dense",
                    csr.name, path_, problem));
  }

  // Whether an array is the mask of another one, which it is then noted for.
  bool find_owner(const std::string& name) {
    if (!name.ends_with(kMaskEnding)) return false;
    const std::string stem = name.substr(0, name.size() - kMaskEnding.size());
    const size_t place = places_.at(name);
    const std::string unpruned = stem + std::string(kUnprunedEnding);
    if (!places_.contains(stem) && places_.contains(unpruned)) {
      auto node = places_.extract(unpruned);
      node.key() = stem;
      places_.insert(std::move(node));
    }
    const auto owner = places_.find(stem);
    const auto int8 = int8_.find(stem);
    const bool is_int8 = int8 != int8_.end() && !int8->second.bitmask;
    if (owner == places_.end() && !is_int8) return false;
    const Shape& shape = is_int8 ? int8->second.shape : file_->arrays()[owner->second].shape;
    const Shape& own = file_->arrays()[place].shape;
    if (own != shape) {
      throw CheckpointError(
          fmt::format("the mask '{}' in '{}' has shape {}, what it masks {}; save it in that shape",
                      name, path_, own.to_string(), shape.to_string()));
    }
    masks_[stem] = {name, place};
    if (is_int8) items_[stem].mask = name;
    return true;
  }

  Item item(const std::string& name, size_t place) const {
    const ArrayEntry& entry = file_->arrays()[place];
    Item item{.shape = entry.shape, .type = {}};
    if (!is_float(entry.type)) item.type = entry.type_name;
    if (is_float(entry.type) && entry.type != ElementType::F32) item.stored_as = entry.type_name;
    const auto mask = masks_.find(name);
    if (mask != masks_.end()) item.mask = mask->second.name;
    return item;
  }

  std::unique_ptr<ArrayFile> file_;
  std::map<std::string, size_t> places_;  // in the file, by name
  std::map<std::string, Mask> masks_;     // by the name of the masked array
  std::map<std::string, Csr> csr_;        // by the name that their arrays begin with
  std::map<std::string, Int8Places> int8_;
};

}  // namespace

std::unique_ptr<StoredValues> open_stored_arrays(const std::string& path) {
  refuse_pickles(path);
  const std::string file = foreign_file(path);
  try {
    return std::make_unique<StoredArrays>(file);
  } catch (const DataError& error) {
    refuse_unreadable(file, error);
  }
}

}  // namespace lacuna
