// A mask recorded, and its picture; its files are in mask_file.cpp.
#include "lacuna/framework/records/mask_record.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/records/png_image.hpp"

namespace lacuna {
namespace {

constexpr int64_t kMostTilesOfASide = 128;

int64_t tiles_of(int64_t length, int64_t tile) { return (length + tile - 1) / tile; }

// Positions that a tile at the edge has, counted along one side.
int64_t extent(int64_t tile_index, int64_t tile, int64_t length) {
  return std::min(tile, length - tile_index * tile);
}

// Counts of positions in tiles made densities.
std::vector<float> densities(const std::vector<int64_t>& counts, int64_t rows, int64_t columns,
                             int64_t tile_rows, int64_t tile_columns) {
  const int64_t across = tiles_of(columns, tile_columns);
  std::vector<float> result(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto tile = static_cast<int64_t>(i);
    const int64_t positions =
        extent(tile / across, tile_rows, rows) * extent(tile % across, tile_columns, columns);
    result[i] = static_cast<float>(counts[i]) / static_cast<float>(positions);
  }
  return result;
}

// From white to a dark blue, which print in grey too.
Palette mask_palette() {
  constexpr std::array<double, 3> dark = {15, 42, 82};
  Palette palette{};
  for (size_t i = 0; i < palette.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const double share = static_cast<double>(i) / 255.0;
      palette[i][c] = static_cast<uint8_t>(std::lround(255.0 + share * (dark[c] - 255.0)));
    }
  }
  return palette;
}

}  // namespace

MaskRecord record_mask(std::string name, const Shape& shape, const VisitPositions& positions,
                       MaskDetail detail) {
  MaskRecord mask{.name = std::move(name), .shape = shape};
  const int64_t rows = mask.rows(), columns = mask.columns();
  mask.fan_in.assign(static_cast<size_t>(rows), 0);
  std::vector<int64_t> counts;
  int64_t across = 0;
  if (detail == MaskDetail::Positions) {
    mask.bits.assign(static_cast<size_t>((shape.numel() + 7) / 8), 0);
  } else {
    mask.tile_rows = std::max<int64_t>(1, tiles_of(rows, kMostTilesOfASide));
    mask.tile_columns = std::max<int64_t>(1, tiles_of(columns, kMostTilesOfASide));
    across = tiles_of(columns, mask.tile_columns);
    counts.assign(static_cast<size_t>(tiles_of(rows, mask.tile_rows) * across), 0);
  }
  positions([&](int64_t flat) {
    const int64_t row = flat / columns;
    ++mask.nnz;
    ++mask.fan_in[static_cast<size_t>(row)];
    if (detail == MaskDetail::Positions) {
      mask.bits[static_cast<size_t>(flat / 8)] |= static_cast<uint8_t>(1u << (flat % 8));
    } else {
      const int64_t column = flat % columns;
      ++counts[static_cast<size_t>(row / mask.tile_rows * across + column / mask.tile_columns)];
    }
  });
  mask.tiles = densities(counts, rows, columns, mask.tile_rows, mask.tile_columns);
  return mask;
}

MaskPicture picture_of(const MaskRecord& mask, int64_t most) {
  const int64_t rows = mask.rows(), columns = mask.columns();
  if (rows == 0 || columns == 0) {
    throw ShapeError(fmt::format("'{}' of shape {} has no positions to draw", mask.name,
                                 mask.shape.to_string()));
  }
  MaskPicture picture{.tile_rows = mask.tile_rows, .tile_columns = mask.tile_columns};
  std::vector<float> tiles = mask.tiles;
  if (!mask.bits.empty()) {
    picture.tile_rows = tiles_of(rows, most);
    picture.tile_columns = tiles_of(columns, most);
    const int64_t across = tiles_of(columns, picture.tile_columns);
    std::vector<int64_t> counts(static_cast<size_t>(tiles_of(rows, picture.tile_rows) * across), 0);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t flat = row * columns + column;
        counts[static_cast<size_t>(row / picture.tile_rows * across +
                                   column / picture.tile_columns)] +=
            mask.bits[static_cast<size_t>(flat / 8)] >> (flat % 8) & 1;
      }
    }
    tiles = densities(counts, rows, columns, picture.tile_rows, picture.tile_columns);
  }
  picture.width = tiles_of(columns, picture.tile_columns);
  picture.height = tiles_of(rows, picture.tile_rows);
  const float darkest = std::ranges::max(tiles);
  picture.darkest = darkest > 0.0F ? darkest : 1.0;
  std::vector<uint8_t> pixels;
  for (const float density : tiles) {
    pixels.push_back(static_cast<uint8_t>(std::lround(255.0 * density / picture.darkest)));
  }
  static const Palette palette = mask_palette();
  picture.png = encode_png(picture.width, picture.height, pixels, palette);
  return picture;
}

}  // namespace lacuna
