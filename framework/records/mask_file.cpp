// Masks in HDF5 files: masks/step-N.h5, sealed as checkpoints are, and those in checkpoints.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/mask_record.hpp"

namespace lacuna {
namespace {

constexpr int64_t kMaskFormat = 1;
constexpr int64_t kNewestCheckpoint = 2;

void write_mask(Hdf5File& file, const MaskRecord& mask) {
  const std::string group = "/masks/" + mask.name;
  file.write(group + "/shape", Shape{mask.shape.rank()}, mask.shape.sizes());
  if (mask.tiles.empty()) {
    file.write(group + "/bits", Shape{static_cast<int64_t>(mask.bits.size())}, mask.bits,
               Compression::Deflate);
    return;
  }
  const std::vector<int64_t> tile = {mask.tile_rows, mask.tile_columns};
  const int64_t across = (mask.columns() + mask.tile_columns - 1) / mask.tile_columns;
  const auto count = static_cast<int64_t>(mask.tiles.size());
  Tensor tiles = Tensor::zeros(Shape{count / across, across});
  std::ranges::copy(mask.tiles, tiles.mutable_storage().begin());
  file.write(group + "/tile", Shape{2}, tile);
  file.write(group + "/tiles", tiles);
  file.write(group + "/fan_in", Shape{mask.rows()}, mask.fan_in);
}

[[noreturn]] void fail(const std::string& path, const std::string& group, const char* what) {
  throw DataError(fmt::format("{}: {}: {}", path, group, what));
}

Shape read_shape(const Hdf5File& file, const std::string& group) {
  const std::vector<int64_t> sizes = file.read_integers(group + "/shape");
  try {
    return Shape(sizes);
  } catch (const ShapeError& error) {
    fail(file.path(), group, error.what());
  }
}

// From a function that returns for each position whether it is there.
template <class IsSet>
MaskRecord mask_of(const std::string& name, const Shape& shape, int64_t numel, IsSet&& is_set) {
  const auto visit = [&](const std::function<void(int64_t)>& take) {
    for (int64_t i = 0; i < numel; ++i) {
      if (is_set(static_cast<size_t>(i))) take(i);
    }
  };
  return record_mask(name, shape, visit, MaskDetail::Positions);
}

MaskRecord read_tiles(const Hdf5File& file, const std::string& group, MaskRecord mask) {
  const std::vector<int64_t> tile = file.read_integers(group + "/tile");
  const Tensor tiles = file.read_floats(group + "/tiles");
  mask.fan_in = file.read_integers(group + "/fan_in");
  if (tile.size() != 2 || tile[0] < 1 || tile[1] < 1 || tiles.shape().rank() != 2 ||
      static_cast<int64_t>(mask.fan_in.size()) != mask.rows() ||
      tiles.shape()[0] != (mask.rows() + tile[0] - 1) / tile[0] ||
      tiles.shape()[1] != (mask.columns() + tile[1] - 1) / tile[1]) {
    fail(file.path(), group, "its tiles do not fit its shape");
  }
  const auto values = tiles.storage();
  const bool are_fractions =
      std::ranges::all_of(values, [](float value) { return value >= 0.0F && value <= 1.0F; });
  if (!are_fractions) fail(file.path(), group, "its tiles are not densities");
  mask.tile_rows = tile[0], mask.tile_columns = tile[1];
  mask.tiles.assign(values.begin(), values.end());
  mask.nnz = std::accumulate(mask.fan_in.begin(), mask.fan_in.end(), int64_t{0});
  return mask;
}

MaskRecord read_mask(const Hdf5File& file, const std::string& name) {
  const std::string group = "/masks/" + name;
  const Shape shape = read_shape(file, group);
  if (!file.exists(group + "/bits")) return read_tiles(file, group, {.name = name, .shape = shape});
  const std::vector<uint8_t> bits = file.read_bytes(group + "/bits");
  if (static_cast<int64_t>(bits.size()) != (shape.numel() + 7) / 8) {
    fail(file.path(), group, "its bits do not fit its shape");
  }
  return mask_of(name, shape, shape.numel(),
                 [&](size_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; });
}

// A parameter in a compressed layout is a group.
MaskRecord read_compressed(const Hdf5File& file, const std::string& name) {
  const std::string group = "/model/" + name;
  const Shape shape = read_shape(file, group);
  const std::vector<int64_t> begin = file.read_integers(group + "/indptr");
  const std::vector<uint32_t> columns = file.read_indices(group + "/indices");
  const MaskRecord size{.name = name, .shape = shape};
  const int64_t width = size.columns();
  if (static_cast<int64_t>(begin.size()) != size.rows() + 1 || begin.front() != 0 ||
      begin.back() != static_cast<int64_t>(columns.size()) || !std::ranges::is_sorted(begin) ||
      std::ranges::any_of(columns, [&](uint32_t c) { return static_cast<int64_t>(c) >= width; })) {
    fail(file.path(), group, "its index does not fit its shape");
  }
  const auto visit = [&](const std::function<void(int64_t)>& take) {
    for (int64_t row = 0; row < size.rows(); ++row) {
      for (int64_t i = begin[static_cast<size_t>(row)]; i < begin[static_cast<size_t>(row) + 1];
           ++i) {
        take(row * width + columns[static_cast<size_t>(i)]);
      }
    }
  };
  constexpr int64_t kMostBits = int64_t{1} << 30;
  return record_mask(name, shape, visit,
                     shape.numel() > kMostBits ? MaskDetail::Tiles : MaskDetail::Positions);
}

}  // namespace

void write_masks(const std::string& path, int64_t step, const std::vector<MaskRecord>& masks) {
  FileReplacement replacement(path);
  Hdf5File file = Hdf5File::create(replacement.temporary_path(), {.user_block_bytes = kSealBytes});
  file.write_attribute("/", "step", step);
  for (const MaskRecord& mask : masks) write_mask(file, mask);
  file.close();
  seal_file(replacement.temporary_path(), kMaskFormat);
  replacement.flush();
  replacement.commit();
  trust_hdf5(path);
}

namespace {

StepMasks read_mask_file(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  StepMasks result{.step = file.attribute_integer("/", "step"), .masks = {}};
  for (const std::string& name : file.children("/masks")) {
    result.masks.push_back(read_mask(file, name));
  }
  return result;
}

StepMasks read_checkpoint_masks(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  StepMasks result{.step = file.attribute_integer("/", "step"), .masks = {}};
  for (const std::string& name : file.children("/model")) {
    const std::string item = "/model/" + name;
    if (file.is_group(item)) {
      if (file.exists(item + "/indptr")) result.masks.push_back(read_compressed(file, name));
      continue;
    }
    if (!file.exists(item + "_mask")) continue;
    const Shape shape = file.shape(item);
    const std::vector<uint8_t> bytes = file.read_bytes(item + "_mask");
    if (static_cast<int64_t>(bytes.size()) != shape.numel())
      fail(path, item, "its mask is too short");
    result.masks.push_back(
        mask_of(name, shape, shape.numel(), [&](size_t i) { return bytes[i] != 0; }));
  }
  return result;
}

}  // namespace

StepMasks read_masks(const std::string& path) {
  verify_seal(path, kMaskFormat);
  probe_hdf5({.path = path, .purpose = "masks"}, [&] { read_mask_file(path); });
  return read_mask_file(path);
}

StepMasks read_masks_of_checkpoint(const std::string& path) {
  verify_seal(path, kNewestCheckpoint);
  probe_hdf5({.path = path, .purpose = "masks of a checkpoint"},
             [&] { read_checkpoint_masks(path); });
  return read_checkpoint_masks(path);
}

}  // namespace lacuna
