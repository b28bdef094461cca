#include "lacuna/framework/kernels/int8/int8_rows.hpp"

#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/int8/int8_groups.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

namespace lacuna {
namespace {

constexpr int64_t kTileBytes = kInt8TileQuads * kInt8Group;

// A word, and the place of its quad in a tile.
struct PlacedWord {
  int32_t word;
  uint8_t place;
};

// The words of each row in each tile: [tile][row].
class PlacedWords {
 public:
  PlacedWords(int64_t tiles, int64_t rows) : rows_(rows), all_(static_cast<size_t>(tiles * rows)) {}
  void add(int64_t row, int64_t quad, int32_t word) {
    all_[static_cast<size_t>(quad / kInt8TileQuads * rows_ + row)].push_back(
        {word, static_cast<uint8_t>(quad % kInt8TileQuads)});
  }
  const std::vector<PlacedWord>& at(int64_t tile, int64_t row) const {
    return all_[static_cast<size_t>(tile * rows_ + row)];
  }

 private:
  int64_t rows_;
  std::vector<std::vector<PlacedWord>> all_;
};

void place_groups(const Int8Block& block, PlacedWords& placed) {
  const CsrStream& stream = block.stream;
  for (const CsrTile& tile : stream.tiles) {
    csr_for_each_segment(stream, tile, [&](int64_t row, int64_t first, int64_t, int64_t length) {
      for (int64_t i = first; i < first + length; ++i) {
        const auto at = static_cast<size_t>(i);
        placed.add(row, tile.first_column + stream.offsets[at], block.words[at]);
      }
    });
  }
}

// The words of a weight of another form, which is converted to groups of 1 × 4.
void place_groups(internal::Int8Groups groups, bool fits_pairs, PlacedWords& placed) {
  if (fits_pairs) groups = internal::split_int8_groups(groups);
  for (size_t row = 0; row + 1 < groups.row_begin.size(); ++row) {
    for (auto i = static_cast<size_t>(groups.row_begin[row]);
         i < static_cast<size_t>(groups.row_begin[row + 1]); ++i) {
      placed.add(static_cast<int64_t>(row), groups.quad[i], groups.word[i]);
    }
  }
}

Int8SlicedBlock sliced_block(const Int8Matrix& matrix, const Int8Block& block, int64_t tiles) {
  const int64_t rows = block.rows, slices = (rows + kInt8Slice - 1) / kInt8Slice;
  PlacedWords placed(tiles, rows);
  if (matrix.form == Int8Form::Groups) {
    place_groups(block, placed);
  } else if (matrix.form == Int8Form::Floats) {
    place_groups(internal::int8_groups(matrix.floats, block.first_row, block.first_row + rows),
                 matrix.fits_pairs, placed);
  } else {
    place_groups(internal::int8_groups(block.cells), matrix.fits_pairs, placed);
  }
  Int8SlicedBlock sliced{.first_row = block.first_row, .rows = rows};
  const auto of_lane = [&](int64_t tile, int64_t slice, int64_t lane) {
    const int64_t row = slice * kInt8Slice + lane;
    return row < rows ? &placed.at(tile, row) : nullptr;
  };
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const auto first = static_cast<int64_t>(sliced.runs.size());
    sliced.tile_begin.push_back(first);
    for (int64_t slice = 0; slice < slices; ++slice) {
      size_t steps = 0;
      for (int64_t lane = 0; lane < kInt8Slice; ++lane) {
        const auto* words = of_lane(tile, slice, lane);
        if (words != nullptr) steps = std::max(steps, words->size());
      }
      if (steps == 0) continue;
      sliced.runs.push_back(
          {.slice = static_cast<uint32_t>(slice), .steps = static_cast<uint32_t>(steps)});
    }
    std::ranges::stable_sort(sliced.runs.begin() + first, sliced.runs.end(), std::ranges::greater(),
                             &Int8SliceRun::steps);
    for (auto run = sliced.runs.begin() + first; run != sliced.runs.end(); ++run) {
      for (size_t step = 0; step < run->steps; ++step) {
        for (int64_t lane = 0; lane < kInt8Slice; ++lane) {
          const auto* words = of_lane(tile, run->slice, lane);
          const bool has = words != nullptr && step < words->size();
          sliced.words.push_back(has ? (*words)[step].word : 0);
          sliced.places.push_back(has ? (*words)[step].place : uint8_t{0});
        }
      }
    }
  }
  sliced.tile_begin.push_back(static_cast<int64_t>(sliced.runs.size()));
  return sliced;
}

void clear_rest(int64_t features, uint8_t* row) {
  std::memset(row + features, 0, static_cast<size_t>(int8_row_bytes(features) - features));
}

}  // namespace

int64_t Int8Sliced::bytes() const {
  int64_t total = 0;
  for (const Int8SlicedBlock& block : blocks) {
    total += static_cast<int64_t>(block.words.size() * sizeof(int32_t) + block.places.size() +
                                  block.runs.size() * sizeof(Int8SliceRun) +
                                  block.tile_begin.size() * sizeof(int64_t));
  }
  return total;
}

Int8Sliced int8_sliced(const Int8Matrix& matrix) {
  Int8Sliced sliced{.rows = matrix.rows, .columns = matrix.columns};
  const int64_t tiles = int8_row_bytes(matrix.columns) / kTileBytes;
  for (const Int8Block& block : matrix.blocks) {
    sliced.blocks.push_back(sliced_block(matrix, block, tiles));
  }
  return sliced;
}

int64_t int8_few_examples() { return internal::int8_kernels().front()->few_examples; }

int64_t int8_row_bytes(int64_t features) {
  return (features + kTileBytes - 1) / kTileBytes * kTileBytes;
}

void internal::int8_few_product_by(const Int8Kernels& kernels, const Int8Matrix& weight,
                                   const Int8Sliced& sliced, const uint8_t* x, int64_t batch,
                                   const Int8Epilogue& epilogue) {
  const auto parts = static_cast<int64_t>(sliced.blocks.size());
  const int64_t row_bytes = int8_row_bytes(weight.columns);
  parallel_blocks(parts * batch, [&](int64_t number) {
    const Int8SlicedBlock& block = sliced.blocks[static_cast<size_t>(number % parts)];
    const int64_t example = number / parts;
    const int64_t padded = (block.rows + kInt8Slice - 1) / kInt8Slice * kInt8Slice;
    Array<int32_t> sums(static_cast<size_t>(padded), 0);
    kernels.few({.matrix = &weight,
                 .block = &block,
                 .x = x + example * row_bytes,
                 .example = example,
                 .epilogue = &epilogue,
                 .sums = sums.data()});
    if (epilogue.bytes != nullptr && number % parts == parts - 1) {
      clear_rest(weight.rows, epilogue.bytes + example * int8_row_bytes(weight.rows));
    }
  });
}

void internal::int8_quantize_rows_by(const Int8Kernels& kernels, const float* x, int64_t batch,
                                     int64_t features, const Int8Grid& grid, uint8_t* bytes) {
  for (int64_t b = 0; b < batch; ++b) {
    uint8_t* row = bytes + b * int8_row_bytes(features);
    kernels.quantize_row(x + b * features, features, 1.0f / grid.scale,
                         static_cast<float>(grid.zero), row);
    clear_rest(features, row);
  }
}

void int8_few_product(const Int8Matrix& weight, const Int8Sliced& sliced, const uint8_t* x,
                      int64_t batch, const Int8Epilogue& epilogue) {
  internal::int8_few_product_by(*internal::int8_kernels().front(), weight, sliced, x, batch,
                                epilogue);
}

void int8_quantize_rows(const float* x, int64_t batch, int64_t features, const Int8Grid& grid,
                        uint8_t* bytes) {
  internal::int8_quantize_rows_by(*internal::int8_kernels().front(), x, batch, features, grid,
                                  bytes);
}

void int8_quantize_row_examples(const float* x, int64_t batch, int64_t features, float* scales,
                                int32_t* zeros, uint8_t* bytes) {
  for (int64_t b = 0; b < batch; ++b) {
    const float* row = x + b * features;
    const auto [low, high] = std::minmax_element(row, row + features);
    const Int8Grid grid = int8_grid(*low, *high);
    scales[b] = grid.scale;
    zeros[b] = grid.zero;
    int8_quantize_rows(row, 1, features, grid, bytes + b * int8_row_bytes(features));
  }
}

}  // namespace lacuna
