// MaskRecord: which positions of a parameter were there at one step, to be looked at later; its
// picture; and the files masks/step-N.h5 of a run that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// The mask of one parameter, seen as a matrix: dimension 0 is the rows, all others together the
/// columns. It is kept position by position, or where that would be too large as the densities of
/// tiles.
struct MaskRecord {
  std::string name;
  Shape shape;
  int64_t nnz = 0;
  std::vector<int64_t> fan_in = {};  ///< positions in each row
  /// Bit i % 8 of byte i / 8 is position i; empty where tiles are kept.
  std::vector<uint8_t> bits = {};
  int64_t tile_rows = 1, tile_columns = 1;  ///< positions of a tile
  std::vector<float> tiles = {};            ///< density of each tile, row by row; empty with bits

  int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  int64_t columns() const { return rows() == 0 ? 0 : shape.numel() / rows(); }
};

/// Calls its argument with the flat index of each position, in any order.
using VisitPositions = std::function<void(const std::function<void(int64_t)>&)>;

enum class MaskDetail { Positions, Tiles };
/// *Cost:* O(positions), and the bits, or at most 128 × 128 tiles.
MaskRecord record_mask(std::string name, const Shape& shape, const VisitPositions& positions,
                       MaskDetail detail);

/// A mask as an image: a pixel for each position, or for each tile of so many that no side is
/// longer than asked for.
struct MaskPicture {
  int64_t width = 0, height = 0;            ///< pixels
  int64_t tile_rows = 1, tile_columns = 1;  ///< positions of a pixel
  double darkest = 1.0;                     ///< density of the darkest pixel
  std::string png = {};                     ///< white to dark blue
};
/// *Errors:* ShapeError when the mask has no positions at all, there or not.
MaskPicture picture_of(const MaskRecord& mask, int64_t most_pixels_of_a_side);

/// Writes a file with the masks of one step, whole or not at all. *Errors:* StateError.
void write_masks(const std::string& path, int64_t step, const std::vector<MaskRecord>& masks);

struct StepMasks {
  int64_t step = 0;
  std::vector<MaskRecord> masks;
};
/// *Errors:* CheckpointError when the file is missing, damaged in any byte, or of a newer format;
/// DataError when its parts do not fit together.
StepMasks read_masks(const std::string& path);

/// The masks that a checkpoint's file holds: of masked and compressed parameters.
/// *Errors:* CheckpointError, DataError.
StepMasks read_masks_of_checkpoint(const std::string& path);

}  // namespace lacuna
