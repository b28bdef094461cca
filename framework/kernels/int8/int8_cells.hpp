// Int8 weights whose rows have their inputs in common: N:M patterns in groups of rows, blocks of
// four rows and more, dense weights.
//
// Four rows are computed together, so a load of activations serves four products. A line is what a
// word of each row is multiplied with: four inputs of 64 examples, 256 bytes. Lines are quads of
// the slab where the inputs are whole quads. Where they are not (2:4 has two of each four), the
// four inputs of a line are gathered from several quads into scratch memory, once for all rows that
// have them in common.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/array.h"

namespace lacuna {

/// Inputs in a group: the bytes that one instruction multiplies and adds.
inline constexpr int64_t kInt8Group = 4;
inline int64_t int8_quads(int64_t features) { return (features + kInt8Group - 1) / kInt8Group; }

/// Rows that are computed together.
inline constexpr int64_t kInt8CellRows = 4;

/// How the rows of an int8 weight are stored.
enum class Int8Form {
  Groups,         ///< each row has its own groups of 1 × 4
  Cells,          ///< four rows share lines, which are quads
  GatheredCells,  ///< four rows share lines, some of which are gathered
  Floats          ///< float32 csr of the integers (int8_floats.hpp); the results are the same
};

/// The fastest form for a weight with these positions, which depends on the kernels in use: Floats
/// where int8 would be slower. *Cost:* O(positions).
Int8Form int8_form(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                   std::span<const uint32_t> column_of);

/// A quad from which a line takes up to four inputs.
struct Int8Source {
  static constexpr uint8_t kNone = 0x80;
  uint16_t quad = 0;
  /// For each input of the line its place in the quad, or kNone where it is not from there.
  std::array<uint8_t, kInt8Group> places = {kNone, kNone, kNone, kNone};
};

/// Neighbouring rows that have the same inputs.
struct Int8CellRun {
  int64_t first_row = 0, rows = 0;    ///< in the block; whole fours, but for the block's last rows
  int64_t first_line = 0, lines = 0;  ///< where lines are quads: in Int8Cells::quads
  int64_t first_source = 0;           ///< where they are gathered
  int64_t sources = 0;                ///< of each line; 0: lines are quads
  int64_t first_word = 0;             ///< [fours of rows][lines][4]
};

struct Int8Cells {
  std::vector<Int8CellRun> runs = {};
  Array<uint16_t> quads = {};
  std::vector<Int8Source> sources = {};  ///< [line][sources of the run]
  Array<int32_t> words = {};             ///< four weights each

  int64_t gathered_lines() const;  ///< the most of a run
  int64_t bytes() const;
};

namespace internal {

struct Int8Kernels;

Int8Form int8_form_for(const Int8Kernels& kernels, int64_t rows, int64_t columns,
                       std::span<const int64_t> row_begin, std::span<const uint32_t> column_of);

/// Rows [first_row, end_row) of a weight, of which aligned fours have the same columns.
Int8Cells int8_cells(int64_t first_row, int64_t end_row, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of, std::span<const int8_t> values,
                     bool splits_words);

struct Int8Groups;
/// The same weights in groups of 1 × 4.
Int8Groups int8_groups(const Int8Cells& cells);

}  // namespace internal
}  // namespace lacuna
