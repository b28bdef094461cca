// Building streams: see csr.hpp.
#include "lacuna/framework/kernels/csr/csr_stream.hpp"

#include <algorithm>
#include <numeric>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/simd/processor.hpp"

namespace lacuna {
namespace {

constexpr int64_t kLongestTile = 1 << 16;  // offsets have 16 bits

}  // namespace

// Blocks have about equal numbers of nonzeros, so that threads finish together. A block has a
// minimum of work (or threads cost more than they save), of rows (or tiles are loaded for little
// work), and of nonzeros per tile, which costs 48 bytes.
int64_t internal::count_blocks(int64_t rows, int64_t columns, int64_t nnz) {
  constexpr int64_t kNonzeros = 16384, kRows = 512, kNonzerosInTile = 256;
  const int64_t in_block = std::max(kNonzeros, kNonzerosInTile * (columns / kLongestTile));
  return std::clamp<int64_t>(std::min(rows / kRows, nnz / in_block), 1, 1 << 16);
}

namespace {

// A number of columns in a tile, and the cycles per nonzero with it.
struct TileChoice {
  int64_t columns;
  double per_nonzero;
};

}  // namespace

// A tile of 160 columns of a slab takes 40 KiB of the first-level cache. Longer tiles are read from
// the second level (above 2048 columns from the third), but save loading and storing each output
// row once per tile (about 14 cycles). If the rows of a block use each column less than once, no
// cache helps, and the longest tile is best. If rows have many nonzeros, a tile's rows of two slabs
// should fit, for the gradient (csr_gradient.cpp).
int64_t internal::choose_tile(int64_t columns, int64_t rows, int64_t nnz) {
  constexpr double kSegment = 14.0;
  const double density =
      rows == 0 || columns == 0
          ? 0.0
          : static_cast<double>(nnz) / static_cast<double>(rows) / static_cast<double>(columns);
  const auto cost = [&](const TileChoice& tile) {
    const auto width = static_cast<double>(tile.columns);
    const double segments = std::min(1.0, density * width) / width;  // by column
    return tile.per_nonzero * density + kSegment * segments;
  };
  int64_t near_tile = density > 0.15 ? 128 : 160;
  if (gradient_takes_two_slabs() &&
      density * static_cast<double>(two_slabs_tile()) > kManyNonzeros + 2) {
    near_tile = two_slabs_tile();
  }
  // A first level of 48 KiB holds almost all columns of this tile.
  const double per_nonzero_of_205 = first_level_bytes() >= 48 << 10 ? 5.4 : 6.5;
  if (columns <= near_tile) return std::max<int64_t>(columns, 1);
  const int64_t far_tile = std::min(columns, kLongestTile);
  if (nnz / count_blocks(rows, columns, nnz) < columns) return far_tile;
  TileChoice best{far_tile, columns <= 2048 ? 8.0 : 9.0};
  for (const TileChoice& tile :
       {TileChoice{340, 6.5}, TileChoice{205, per_nonzero_of_205}, TileChoice{near_tile, 5.0}}) {
    const int64_t tiles = (columns + tile.columns - 1) / tile.columns;
    const TileChoice even{(columns + tiles - 1) / tiles, tile.per_nonzero};
    if (cost(even) <= cost(best)) best = even;
  }
  return best.columns;
}

bool internal::has_many_nonzeros(const CsrStream& stream) {
  return stream.nnz >= kManyNonzeros * stream.rows * count_tiles(stream);
}

std::vector<int64_t> internal::cut_rows(int64_t rows, int64_t blocks,
                                        std::span<const int64_t> row_begin) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  std::vector<int64_t> ends;
  for (int64_t b = 1; b < blocks; ++b) {
    const int64_t want = row_begin.front() + nnz * b / blocks;
    const int64_t row = std::ranges::lower_bound(row_begin, want) - row_begin.begin();
    if (row > (ends.empty() ? 0 : ends.back()) && row < rows) ends.push_back(row);
  }
  ends.push_back(rows);
  return ends;
}

int64_t internal::count_tiles(const CsrStream& stream) {
  return std::max<int64_t>((stream.columns + stream.tile_columns - 1) / stream.tile_columns, 1);
}

CsrStream internal::sized_stream(int64_t rows, int64_t columns, int64_t nnz, int64_t tile_columns) {
  CsrStream stream{.rows = rows, .columns = columns, .nnz = nnz};
  stream.tile_columns = tile_columns;
  stream.offsets.resize(static_cast<size_t>(nnz) + 4);
  std::fill_n(stream.offsets.end() - 4, 4, uint16_t{0});
  stream.rows_in_order.reserve(static_cast<size_t>(rows));
  return stream;
}

namespace {

using internal::Arrangement;
using internal::Segment;

// Fills a stream from rows of columns. A block's row segments are first sorted by tile, so rows
// without a nonzero in a tile cost nothing there; in a wide matrix, these are nearly all rows.
class Builder {
 public:
  Builder(CsrStream& stream, std::span<const int64_t> row_begin, std::span<const uint32_t> columns)
      : stream_(stream),
        arrangement_(stream),
        row_begin_(row_begin),
        columns_(columns),
        tiles_(internal::count_tiles(stream)) {}

  void add_block(int64_t first, int64_t end) {
    arrangement_.begin_block(first, end);
    cut_block(first, end);
    const std::span<const Segment> segments = sort_by_tile();
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const auto t = static_cast<size_t>(tile);
      add_tile(tile * stream_.tile_columns,
               segments.subspan(tile_begin_[t], tile_begin_[t + 1] - tile_begin_[t]));
    }
    arrangement_.end_block();
  }
  void end_stream() { arrangement_.end_stream(); }

 private:
  // Collects the block's segments, row by row, and counts those of each tile (two places further in
  // tile_begin_). The first tile has a segment for every row.
  void cut_block(int64_t first, int64_t end) {
    segments_.clear();
    tile_of_.clear();
    tile_begin_.assign(static_cast<size_t>(tiles_) + 2, 0);
    const auto width = static_cast<uint64_t>(stream_.tile_columns);
    for (int64_t row = first; row < end; ++row) {
      int64_t i = row_begin_[static_cast<size_t>(row)];
      const int64_t row_end = row_begin_[static_cast<size_t>(row) + 1];
      uint64_t tile = 0;
      do {
        const uint64_t end_column = (tile + 1) * width;
        const int64_t begin = i;
        while (i < row_end && columns_[static_cast<size_t>(i)] < end_column) ++i;
        segments_.push_back({.row = static_cast<uint32_t>(row),
                             .length = static_cast<uint32_t>(i - begin),
                             .first = begin});
        tile_of_.push_back(static_cast<uint32_t>(tile));
        ++tile_begin_[tile + 2];
        if (i < row_end) tile = columns_[static_cast<size_t>(i)] / width;
      } while (i < row_end);
    }
  }

  // A counting sort: rows ascend within each tile.
  std::span<const Segment> sort_by_tile() {
    std::partial_sum(tile_begin_.begin(), tile_begin_.end(), tile_begin_.begin());
    if (tiles_ == 1) {
      tile_begin_[1] = segments_.size();
      return segments_;
    }
    sorted_.resize(segments_.size());
    for (size_t i = 0; i < segments_.size(); ++i) {
      sorted_[tile_begin_[tile_of_[i] + 1]++] = segments_[i];
    }
    return sorted_;
  }

  void add_tile(int64_t first_column, std::span<const Segment> segments) {
    arrangement_.add_tile(first_column, segments, [&](const Segment& segment, int64_t value) {
      const uint32_t* columns = columns_.data() + segment.first;
      uint16_t* offsets = stream_.offsets.data() + value;
      for (uint32_t k = 0; k < segment.length; ++k) {
        offsets[k] = static_cast<uint16_t>(columns[k] - static_cast<uint32_t>(first_column));
      }
    });
  }

  CsrStream& stream_;
  Arrangement arrangement_;
  std::span<const int64_t> row_begin_;
  std::span<const uint32_t> columns_;
  int64_t tiles_;
  std::vector<Segment> segments_, sorted_;  // of the current block: by row, by tile
  std::vector<uint32_t> tile_of_;           // of segments_
  std::vector<size_t> tile_begin_;          // by tile: its first segment
};

CsrStream build(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                std::span<const uint32_t> column_of, int64_t tile_columns, int64_t blocks) {
  CsrStream stream =
      internal::sized_stream(rows, columns, row_begin.back() - row_begin.front(), tile_columns);
  Builder builder(stream, row_begin, column_of);
  int64_t first = 0;
  for (const int64_t end : internal::cut_rows(rows, blocks, row_begin)) {
    builder.add_block(first, end);
    first = end;
  }
  builder.end_stream();
  return stream;
}

}  // namespace

int64_t csr_gradient_parts(const CsrStream& stream, int64_t multiplied, int64_t rows_of_entry) {
  // A part reads a tile's activations of all slabs: what that takes, some twenty rows take.
  constexpr int64_t kUnitsOfThread = 2, kMultiplied = 1 << 20, kRows = 32;
  const auto blocks = std::max<int64_t>(static_cast<int64_t>(stream.blocks.size()), 1);
  const int64_t wanted = num_threads() == 1 ? 1 : (kUnitsOfThread * num_threads() - 1) / blocks + 1;
  const int64_t worth = stream.nnz * multiplied / blocks / kMultiplied;
  const auto entries = static_cast<int64_t>(stream.rows_in_order.size());
  return std::max<int64_t>(std::min({wanted, worth, entries * rows_of_entry / blocks / kRows}), 1);
}

namespace {

// The first entry of a part; of the one behind the last, the end of the block's.
int64_t first_entry_of(const CsrStream& stream, const CsrBlock& block, int64_t part, int64_t parts,
                       CsrCutAt cut_at) {
  if (part == 0) return block.first_entry;
  if (part == parts || block.first_tile == block.end_tile) return block.end_entry;
  const auto of_tile = [&](int64_t tile) { return stream.tiles[static_cast<size_t>(tile)]; };
  const std::span<const CsrGroup> groups =
      std::span(stream.groups)
          .subspan(static_cast<size_t>(of_tile(block.first_tile).first_group),
                   static_cast<size_t>(of_tile(block.end_tile - 1).end_group -
                                       of_tile(block.first_tile).first_group));
  if (groups.empty()) return block.end_entry;
  const auto end_of = [](const CsrGroup& g) { return g.first_value + g.rows * int64_t{g.length}; };
  const int64_t first = groups.front().first_value;
  const int64_t want = first + (end_of(groups.back()) - first) * part / parts;
  for (const CsrGroup& group : groups) {
    if (end_of(group) <= want) continue;
    if (cut_at == CsrCutAt::Rows) {
      return group.first_row + (want - group.first_value) / group.length / 2 * 2;
    }
    const bool is_behind = want - group.first_value > end_of(group) - want;
    return group.first_row + (is_behind ? group.rows : 0);
  }
  return block.end_entry;
}

}  // namespace

CsrBlock csr_part(const CsrStream& stream, const CsrBlock& block, int64_t part, int64_t parts,
                  CsrCutAt cut_at) {
  CsrBlock cut = block;
  cut.first_entry = first_entry_of(stream, block, part, parts, cut_at);
  cut.end_entry = first_entry_of(stream, block, part + 1, parts, cut_at);
  const auto is_empty = [&](int64_t tile) {
    const CsrTile& at = stream.tiles[static_cast<size_t>(tile)];
    for (int64_t g = at.first_group; g < at.end_group; ++g) {
      if (cut.clipped(stream.groups[static_cast<size_t>(g)]).rows > 0) return false;
    }
    return true;
  };
  while (cut.first_tile < cut.end_tile && is_empty(cut.first_tile)) ++cut.first_tile;
  while (cut.first_tile < cut.end_tile && is_empty(cut.end_tile - 1)) --cut.end_tile;
  return cut;
}

int64_t CsrStream::bytes() const {
  const auto of = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
  return of(blocks) + of(tiles) + of(groups) + of(rows_in_order) + of(offsets);
}

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  CsrStream stream =
      build(rows, columns, row_begin, column_of, internal::choose_tile(columns, rows, nnz),
            internal::count_blocks(rows, columns, nnz));
  internal::pair_rows(stream, {});
  return stream;
}

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of, const CsrCut& cut) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  const int64_t most = std::min(rows / cut.rows_in_block, nnz / cut.nonzeros_in_block);
  return build(rows, columns, row_begin, column_of, cut.tile_columns,
               std::clamp<int64_t>(most, 1, 1 << 16));
}

Array<uint32_t> csr_canonical_places(const CsrStream& stream, std::span<const int64_t> row_begin) {
  Array<uint32_t> places(static_cast<size_t>(stream.nnz));
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  csr_for_each_stretch(stream, [&](int64_t row, int64_t value, int64_t, int64_t length) {
    int64_t& place = next[static_cast<size_t>(row)];
    for (int64_t k = 0; k < length; ++k) {
      places[static_cast<size_t>(value + k)] = static_cast<uint32_t>(place++);
    }
  });
  return places;
}

std::vector<int64_t> csr_row_begins(const CsrStream& stream) {
  std::vector<int64_t> begin(static_cast<size_t>(stream.rows) + 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t, int64_t, int64_t length) {
    begin[static_cast<size_t>(row) + 1] += length;
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  return begin;
}

}  // namespace lacuna
