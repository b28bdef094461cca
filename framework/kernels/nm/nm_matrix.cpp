// The form of N:M matrices, and their construction: see nm.hpp.
#include <fmt/core.h>
#include <algorithm>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {
namespace {

// Packs codes into bytes.
class CodeWriter {
 public:
  CodeWriter(uint8_t* at, int bits) : at_(at), bits_(bits) {}

  void put(uint32_t code) {
    word_ |= code << filled_;
    filled_ += bits_;
    if (filled_ == 8) flush();
  }
  void flush() {
    if (filled_ == 0) return;
    *at_++ = static_cast<uint8_t>(word_);
    word_ = 0;
    filled_ = 0;
  }

 private:
  uint8_t* at_;
  int bits_;
  uint32_t word_ = 0;
  int filled_ = 0;
};

}  // namespace

// Columns are divided evenly among the tiles, in units that hold a multiple of four slots.
int64_t NmMatrixForm::tile_columns() const {
  const int64_t unit = int64_t{m()} * (slots() == 1 ? 4 : slots() == 2 ? 2 : 1);
  const int64_t most = std::max(kMostTileColumns / unit, int64_t{1});
  const int64_t units = (columns + unit - 1) / unit;
  const int64_t count = std::max((units + most - 1) / most, int64_t{1});
  return std::max((units + count - 1) / count, int64_t{1}) * unit;
}

int64_t NmMatrixForm::tiles() const {
  const int64_t width = tile_columns();
  return std::max((columns + width - 1) / width, int64_t{1});
}

// The codes of four slots are read together: one byte, or two.
NmTile NmMatrixForm::tile(int64_t t) const {
  const int64_t width = tile_columns(), bytes_of_four = code_bits() / 2;
  const auto slots_in = [&](int64_t some) { return some / m() * slots(); };
  NmTile tile;
  tile.first_column = t * width;
  tile.columns = std::min(width, columns - tile.first_column);
  tile.slots = slots_in(tile.columns);
  tile.first_slot = rows * slots_in(tile.first_column);
  tile.code_bytes = (tile.slots + 3) / 4 * bytes_of_four;
  tile.first_code = rows * t * (slots_in(width) / 4 * bytes_of_four);
  return tile;
}

int64_t NmMatrixForm::code_bytes() const {
  const NmTile last = tile(tiles() - 1);
  return last.first_code + rows * last.code_bytes;
}

// A block has a minimum of work (or threads cost more than they save) and of rows (or tiles are
// loaded for little work).
int64_t NmMatrixForm::rows_of_block() const {
  constexpr int64_t kRows = 512, kSlots = 16384;
  const int64_t blocks = std::max(std::min(rows / kRows, stored() / kSlots), int64_t{1});
  return std::max(((rows + blocks - 1) / blocks + 3) / 4 * 4, int64_t{4});
}

void NmMatrixForm::require_weights(size_t count) const {
  if (static_cast<int64_t>(count) == rows * columns) return;
  throw ShapeError(
      fmt::format("a selection of {} rows of {} was given {} weights", rows, columns, count));
}

NmMatrix nm_matrix(const NmMatrixForm& form, std::span<const int64_t> row_begin,
                   std::span<const uint32_t> columns) {
  NmMatrix matrix{.form = form};
  matrix.codes.resize(static_cast<size_t>(form.code_bytes()) + 8);
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  const int64_t slots = form.slots();
  for (int64_t t = 0; t < form.tiles(); ++t) {
    const NmTile tile = form.tile(t);
    for (int64_t row = 0; row < form.rows; ++row) {
      CodeWriter codes(matrix.codes.data() + tile.first_code + row * tile.code_bytes,
                       form.code_bits());
      const int64_t first_slot = tile.first_slot + row * tile.slots;
      int64_t& place = next[static_cast<size_t>(row)];
      const int64_t row_end = row_begin[static_cast<size_t>(row) + 1];
      int64_t slot = 0;
      for (int64_t group = 0; group < tile.columns; group += form.m()) {
        const int64_t first = tile.first_column + group, slot_end = slot + slots;
        for (; place < row_end; ++place, ++slot) {
          const int64_t code = columns[static_cast<size_t>(place)] - first;
          if (code >= form.m()) break;
          codes.put(static_cast<uint32_t>(code));
        }
        for (; slot < slot_end; ++slot) {
          codes.put(0);
          matrix.unused.push_back(static_cast<uint32_t>(first_slot + slot));
        }
      }
      codes.flush();
    }
  }
  matrix.unused.shrink_to_fit();
  return matrix;
}

}  // namespace lacuna
