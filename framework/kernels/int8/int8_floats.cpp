#include "lacuna/framework/kernels/int8/int8_floats.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_groups.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

namespace lacuna {

int64_t Int8Floats::bytes() const {
  return stream.bytes() + static_cast<int64_t>(values.size() * sizeof(float));
}

Int8Floats internal::int8_floats(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                                 std::span<const uint32_t> column_of,
                                 std::span<const int8_t> values) {
  Int8Floats floats{.stream = csr_stream(rows, columns, row_begin, column_of)};
  const Array<uint32_t> places = csr_canonical_places(floats.stream, row_begin);
  floats.values.resize(places.size() + 4);  // four are loaded at a time
  for (size_t i = 0; i < places.size(); ++i) {
    floats.values[i] = static_cast<float>(values[places[i]]);
  }
  std::fill_n(floats.values.end() - 4, 4, 0.0f);
  return floats;
}

internal::Int8Groups internal::int8_groups(const Int8Floats& floats, int64_t first_row,
                                           int64_t end_row) {
  struct Weight {
    uint32_t column;
    int8_t value;
  };
  std::vector<std::vector<Weight>> rows(static_cast<size_t>(end_row - first_row));
  csr_for_each_segment(
      floats.stream, [&](int64_t row, int64_t first, int64_t first_column, int64_t length) {
        if (row < first_row || row >= end_row) return;
        for (int64_t i = first; i < first + length; ++i) {
          const auto column = static_cast<uint32_t>(first_column + floats.stream.offsets[i]);
          rows[static_cast<size_t>(row - first_row)].push_back(
              {column, static_cast<int8_t>(floats.values[i])});
        }
      });
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column_of;
  std::vector<int8_t> values;
  for (std::vector<Weight>& row : rows) {
    std::ranges::sort(row, {}, &Weight::column);
    for (const Weight& weight : row) {
      column_of.push_back(weight.column);
      values.push_back(weight.value);
    }
    row_begin.push_back(static_cast<int64_t>(column_of.size()));
  }
  return int8_groups(end_row - first_row, row_begin, column_of, values);
}

void internal::int8_float_product(const Int8Kernels& kernels, const Int8Matrix& weight,
                                  const uint8_t* x, int64_t batch, const Int8Epilogue& epilogue) {
  constexpr int64_t kPiece = 4 * kSlabWidth;  // whose floats stay in the caches
  const int64_t columns = weight.columns, rows = weight.rows;
  const int64_t slab_bytes = int8_quads(columns) * kInt8Group * kSlabWidth;
  const int64_t most = slab_count(std::min(batch, kPiece));
  Array<float> widened(static_cast<size_t>(most * columns * kSlabWidth));
  Array<float> sums(static_cast<size_t>(most * rows * kSlabWidth));
  for (int64_t first = 0; first < batch; first += kPiece) {
    const int64_t examples = std::min(batch - first, kPiece), first_slab = first / kSlabWidth;
    parallel_blocks(slab_count(examples), [&](int64_t slab) {
      kernels.widen(x + (first_slab + slab) * slab_bytes, columns,
                    widened.data() + slab * columns * kSlabWidth);
    });
    csr_product(weight.floats.stream, weight.floats.values.data(), widened.data(), examples,
                nullptr, sums.data());
    for_each_slab_part(
        examples, static_cast<int64_t>(weight.blocks.size()),
        [&](int64_t slab, int64_t part, int64_t width, bool) {
          const Int8Block& block = weight.blocks[static_cast<size_t>(part)];
          const auto values = static_cast<size_t>(block.rows * kSlabWidth);
          Array<uint8_t> bytes(epilogue.bytes != nullptr ? values : 0);
          kernels.end_floats(
              {.matrix = &weight,
               .block = &block,
               .slab = first_slab + slab,
               .width = width,
               .epilogue = &epilogue,
               .row_bytes = bytes.data(),
               .float_sums = sums.data() + (slab * rows + block.first_row) * kSlabWidth});
        });
  }
}

}  // namespace lacuna
