#include "lacuna/framework/kernels/int8/int8.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/avx_vnni.hpp"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/int8/int8_groups.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

namespace lacuna {
namespace {

using internal::Int8Groups;

constexpr int64_t kLine = kInt8Group * kSlabWidth;  // bytes of a quad in a slab

// Rows that have no group in the last tile of a stream of several tiles.
std::vector<uint32_t> rows_absent(const CsrStream& stream) {
  if (stream.tiles.size() < 2) return {};
  std::vector<bool> is_there(static_cast<size_t>(stream.rows), false);
  csr_for_each_segment(stream, stream.tiles.back(), [&](int64_t row, int64_t, int64_t, int64_t) {
    is_there[static_cast<size_t>(row)] = true;
  });
  std::vector<uint32_t> absent;
  for (size_t row = 0; row < is_there.size(); ++row) {
    if (!is_there[row]) absent.push_back(static_cast<uint32_t>(row));
  }
  return absent;
}

// Quads in a tile. A first-level cache of 32 KiB holds the lines of 128 quads. There a group takes
// about 4.5 cycles (Zen 4); from the second level, loads bound it to 8. Each tile but one loads and
// stores a row of sums, in about 16 cycles.
int64_t tile_quads(int64_t rows, int64_t quads, int64_t groups) {
  constexpr double kNear = 4.5, kFar = 8.0, kSegment = 16.0;
  constexpr int64_t kMost = 1 << 16;
  const int64_t near_tile = first_level_bytes() / kLine;
  if (quads <= near_tile) return std::max<int64_t>(quads, 1);
  const int64_t tiles = (quads + near_tile - 1) / near_tile;
  const double in_row =
      static_cast<double>(groups) / static_cast<double>(std::max<int64_t>(rows, 1));
  const double extra = kSegment * std::min(static_cast<double>(tiles - 1), in_row);
  if (kNear * in_row + extra > kFar * in_row) return std::min(quads, kMost);
  return (quads + tiles - 1) / tiles;
}

Int8Block make_block(const Int8Groups& groups, int64_t first_row, int64_t end_row, int64_t quads) {
  const std::span<const int64_t> begin(groups.row_begin.data() + first_row,
                                       static_cast<size_t>(end_row - first_row) + 1);
  const int64_t rows = end_row - first_row, count = begin.back() - begin.front();
  Int8Block block{.first_row = first_row, .rows = rows};
  block.stream = csr_stream(
      rows, quads, begin, groups.quad,
      {.tile_columns = tile_quads(rows, quads, count), .rows_in_block = rows + 1});  // one block
  internal::pair_rows(block.stream, {});
  const Array<uint32_t> places = csr_canonical_places(block.stream, begin);
  block.words.resize(places.size() + 4);  // four are loaded at a time
  for (size_t i = 0; i < places.size(); ++i) block.words[i] = groups.word[places[i]];
  std::fill_n(block.words.end() - 4, 4, 0);
  block.absent = rows_absent(block.stream);
  return block;
}

#if defined(__x86_64__)
[[maybe_unused]] bool has_avx512_vnni() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

std::vector<const internal::Int8Kernels*> choose_kernels() {
  std::vector<const internal::Int8Kernels*> all;
#if defined(__x86_64__)
  const std::string& set = active_instruction_set();
  // A build for one machine has the best of them for it alone (LACUNA_KERNELS=machine).
#ifndef LACUNA_WITHOUT_INT8_AVX512_VNNI
  if (set == "avx512" && has_avx512_vnni()) all.push_back(&internal::kAvx512VnniInt8);
#endif
  [[maybe_unused]] const bool may_use_vnni = set == "avx512" || set == "avx-vnni";
#ifndef LACUNA_WITHOUT_INT8_AVX_VNNI
  if (may_use_vnni && has_avx_vnni()) all.push_back(&internal::kAvxVnniInt8);
#endif
#ifndef LACUNA_WITHOUT_INT8_AVX2
  if (may_use_vnni || set == "avx2") all.push_back(&internal::kAvx2Int8);
#endif
#endif
  all.push_back(&internal::kPlainInt8);
  return all;
}

const internal::Int8Kernels& best_kernels() { return *internal::int8_kernels().front(); }

}  // namespace

const std::vector<const internal::Int8Kernels*>& internal::int8_kernels() {
  static const std::vector<const Int8Kernels*> chosen = choose_kernels();
  return chosen;
}

std::string int8_kernels_name() { return best_kernels().name; }
double int8_group_nonzeros() { return best_kernels().group_nonzeros; }

Int8Grid int8_grid(float low, float high) {
  low = std::min(low, 0.0f);
  high = std::max(high, 0.0f);
  const float scale = (high - low) / 255.0f;
  if (!std::isfinite(scale) || !(scale >= std::numeric_limits<float>::min())) return {};
  const float zero = std::nearbyint(-low / scale);
  return {.scale = scale, .zero = static_cast<int32_t>(std::clamp(zero, 0.0f, 255.0f))};
}

int64_t int8_slab_bytes(int64_t batch, int64_t features) {
  return slab_count(batch) * int8_quads(features) * kLine;
}

int64_t Int8Matrix::bytes() const {
  int64_t total = floats.bytes() + static_cast<int64_t>(row_sums.size() * sizeof(int32_t));
  for (const Int8Block& block : blocks) {
    total += block.stream.bytes() + block.cells.bytes() +
             static_cast<int64_t>((block.words.size() + block.absent.size()) * sizeof(int32_t));
  }
  return total;
}

Int8Matrix internal::int8_matrix_for(const Int8Kernels& kernels, int64_t rows, int64_t columns,
                                     std::span<const int64_t> row_begin,
                                     std::span<const uint32_t> column_of,
                                     std::span<const int8_t> values, std::optional<Int8Form> form) {
  constexpr int64_t kRows = 512, kGroups = 16384;  // of a block, at least, as csr's have
  constexpr int64_t kCellRows = 16;  // blocks are cut between so many, which often share columns
  Int8Groups groups = internal::int8_groups(rows, row_begin, column_of, values);
  Int8Matrix matrix{.rows = rows,
                    .columns = columns,
                    .nnz = row_begin[static_cast<size_t>(rows)] - row_begin.front(),
                    .groups = static_cast<int64_t>(groups.quad.size())};
  matrix.row_sums = internal::int8_row_sums(rows, row_begin, values);
  matrix.form = form.value_or(int8_form_for(kernels, rows, columns, row_begin, column_of));
  matrix.fits_pairs = kernels.splits_words;
  if (kernels.splits_words) groups = internal::split_int8_groups(groups);
  const int64_t blocks = std::max<int64_t>(std::min(rows / kRows, matrix.groups / kGroups), 1);
  const int64_t step = blocks * (matrix.form == Int8Form::Groups ? kInt8Group : kCellRows);
  const int64_t height = (rows + step - 1) / step * (step / blocks);
  for (int64_t first = 0; first < rows; first += height) {
    const int64_t end = std::min(first + height, rows);
    if (matrix.form == Int8Form::Floats) {
      matrix.blocks.push_back({.first_row = first, .rows = end - first});
    } else if (matrix.form == Int8Form::Groups) {
      matrix.blocks.push_back(make_block(groups, first, end, int8_quads(columns)));
    } else {
      matrix.blocks.push_back({.first_row = first,
                               .rows = end - first,
                               .cells = internal::int8_cells(first, end, row_begin, column_of,
                                                             values, kernels.splits_words)});
    }
  }
  if (matrix.form == Int8Form::Floats) {
    matrix.floats = int8_floats(rows, columns, row_begin, column_of, values);
  }
  return matrix;
}

void internal::int8_product_by(const Int8Kernels& kernels, const Int8Matrix& weight,
                               const uint8_t* x, int64_t batch, const Int8Epilogue& epilogue) {
  if (weight.form == Int8Form::Floats) {
    int8_float_product(kernels, weight, x, batch, epilogue);
    return;
  }
  const int64_t slab_bytes = int8_quads(weight.columns) * kLine;
  const bool has_cells = weight.form != Int8Form::Groups;
  for_each_slab_part(
      batch, static_cast<int64_t>(weight.blocks.size()),
      [&](int64_t slab, int64_t part, int64_t width, bool) {
        const Int8Block& block = weight.blocks[static_cast<size_t>(part)];
        const auto values = static_cast<size_t>(block.rows * kSlabWidth);
        Array<int32_t> sums(block.stream.tiles.size() > 1 ? values : 0);
        Array<uint8_t> bytes(epilogue.bytes != nullptr ? values : 0);
        Array<uint8_t> lines(static_cast<size_t>(block.cells.gathered_lines() * kLine));
        const Int8Call call{.matrix = &weight,
                            .block = &block,
                            .x = x + slab * slab_bytes,
                            .slab = slab,
                            .width = width,
                            .epilogue = &epilogue,
                            .sums = sums.data(),
                            .row_bytes = bytes.data(),
                            .lines = lines.data()};
        (has_cells ? kernels.cells : kernels.product)(call);
      });
}

void internal::int8_quantize_by(const Int8Kernels& kernels, const float* slabs, int64_t batch,
                                int64_t features, const Int8Grid& grid, uint8_t* bytes) {
  Array<float> inverse(kSlabWidth, 1.0f / grid.scale);
  Array<float> zeros(kSlabWidth, static_cast<float>(grid.zero));
  parallel_blocks(slab_count(batch), [&](int64_t slab) {
    kernels.quantize(slabs + slab * features * kSlabWidth, features, inverse.data(), zeros.data(),
                     bytes + slab * int8_quads(features) * kLine);
  });
}

void internal::int8_quantize_examples_by(const Int8Kernels& kernels, const float* slabs,
                                         int64_t batch, int64_t features, float* scales,
                                         int32_t* zeros, uint8_t* bytes) {
  parallel_blocks(slab_count(batch), [&](int64_t slab) {
    const float* from = slabs + slab * features * kSlabWidth;
    Array<float> low(kSlabWidth), high(kSlabWidth), inverse(kSlabWidth), zero(kSlabWidth);
    kernels.ranges(from, features, low.data(), high.data());
    for (size_t i = 0; i < static_cast<size_t>(kSlabWidth); ++i) {
      const Int8Grid grid = int8_grid(low[i], high[i]);
      const auto example = static_cast<size_t>(slab * kSlabWidth) + i;
      scales[example] = grid.scale;
      zeros[example] = grid.zero;
      inverse[i] = 1.0f / grid.scale;
      zero[i] = static_cast<float>(grid.zero);
    }
    kernels.quantize(from, features, inverse.data(), zero.data(),
                     bytes + slab * int8_quads(features) * kLine);
  });
}

Int8Form int8_form(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                   std::span<const uint32_t> column_of) {
  return internal::int8_form_for(best_kernels(), rows, columns, row_begin, column_of);
}

Int8Matrix int8_matrix(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                       std::span<const uint32_t> column_of, std::span<const int8_t> values) {
  return internal::int8_matrix_for(best_kernels(), rows, columns, row_begin, column_of, values);
}

void int8_product(const Int8Matrix& weight, const uint8_t* x, int64_t batch,
                  const Int8Epilogue& epilogue) {
  internal::int8_product_by(best_kernels(), weight, x, batch, epilogue);
}

void int8_quantize(const float* slabs, int64_t batch, int64_t features, const Int8Grid& grid,
                   uint8_t* bytes) {
  internal::int8_quantize_by(best_kernels(), slabs, batch, features, grid, bytes);
}

void int8_quantize_examples(const float* slabs, int64_t batch, int64_t features, float* scales,
                            int32_t* zeros, uint8_t* bytes) {
  internal::int8_quantize_examples_by(best_kernels(), slabs, batch, features, scales, zeros, bytes);
}

}  // namespace lacuna
