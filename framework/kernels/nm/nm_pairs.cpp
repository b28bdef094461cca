#include "lacuna/framework/kernels/nm/nm_pairs.hpp"

#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/row_pairs.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_pairs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/slab.inc"

#ifndef LACUNA_NM_PAIRS
#define LACUNA_NM_PAIRS
namespace lacuna {
namespace {

// A tile of a block of rows in one slab.
struct PairRun {
  const NmPairs* pairs = nullptr;
  int64_t part = 0;
  const char* x = nullptr;        // the tile's first row
  char* y = nullptr;              // the slab
  const float* bias = nullptr;    // by row, or null
  const float* values = nullptr;  // the tile's
  int64_t slots = 0;              // per row
  bool is_first = false;          // sums begin with the bias
  // The next tile's activations; each pair prefetches some of their lines.
  const char* ahead = nullptr;
  int64_t ahead_lines = 0;
  // Bytes from a row of y to the same row of the next slab, which is prefetched; 0: it is not.
  int64_t next_slab = 0;
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

bool has_pairs() { return true; }

// Four columns, and the byte offset of the slab row of entry i.
HWY_INLINE uint32_t four_of(const uint8_t* steps) {
  uint32_t word;
  std::memcpy(&word, steps, sizeof word);
  return word;
}
template <int i>
HWY_INLINE size_t row_offset(uint32_t columns) {
  static_assert(kSlabRowBytes == 256);
  if constexpr (i == 0) {
    return columns << 8 & 0xff00;
  } else {
    return columns >> (8 * i - 8) & 0xff00;
  }
}

// Slots are single bytes that can be scaled by addressing: shifts would use a port of the
// multiply-adds.
HWY_INLINE Vector value_of(const float* values, uint8_t slot) {
  return hn::Set(Floats(), values[slot]);
}

// sums += value · x for entry i of four.
template <int i, int kVectors>
HWY_INLINE void add_own(const char* x, uint32_t columns, const float* values, const uint8_t* slots,
                        Vector (&sums)[kVectors]) {
  const char* row = x + row_offset<i>(columns);
  const Vector value = value_of(values, slots[i]);
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(value, load(row, v), sums[v]);
}
template <int i, int kVectors>
HWY_INLINE void add_shared(const char* x, uint32_t columns, const float* const (&values)[2],
                           const uint8_t* slots, Vector (&sums)[2][kVectors]) {
  const char* row = x + row_offset<i>(columns);
  const Vector first = value_of(values[0], slots[i]), second = value_of(values[1], slots[4 + i]);
  for (int v = 0; v < kVectors; ++v) {
    Vector z = load(row, v);
    keep_in_register(z);
    sums[0][v] = hn::MulAdd(first, z, sums[0][v]);
    sums[1][v] = hn::MulAdd(second, z, sums[1][v]);
  }
}

template <int kVectors>
HWY_NOINLINE void product_of_pairs(const PairRun& run) {
  const NmPairs::Part& part = run.pairs->parts[static_cast<size_t>(run.part)];
  const NmPairs::Part& end = run.pairs->parts[static_cast<size_t>(run.part) + 1];
  const uint32_t* rows = run.pairs->rows.data() + part.first_row;
  const uint8_t* step = run.pairs->steps.data() + part.first_byte;
  const auto row_slots = static_cast<size_t>(run.slots);
  const char* ahead_x = run.ahead;
  for (int64_t g = part.first_group; g < end.first_group; ++g) {
    const NmPairs::Group group = run.pairs->groups[static_cast<size_t>(g)];
    const uint32_t shared = group.shared / 4,
                   others = (static_cast<uint32_t>(run.slots) - group.shared) / 4;
    for (uint32_t p = 0; p < group.pairs; ++p, rows += 2) {
      for (int64_t line = 0; line < run.ahead_lines; ++line, ahead_x += 64) {
        __builtin_prefetch(ahead_x, 0, 2);
      }
      Vector sums[2][kVectors];
      char* y[2];
      const float* values[2];
      for (int r = 0; r < 2; ++r) {
        y[r] = run.y + rows[r] * kSlabRowBytes;
        values[r] = run.values + rows[r] * row_slots;
        const char* ahead_y = run.y + rows[r + 4] * kSlabRowBytes;
        const float* ahead = run.values + rows[r + 4] * row_slots;
        for (int v = 0; v < kVectors; ++v) __builtin_prefetch(ahead_y + v * kVectorBytes, 1);
        for (size_t k = 0; k < row_slots; k += 16) __builtin_prefetch(ahead + k);
        for (int64_t at = 0; at < kSlabRowBytes && run.next_slab != 0; at += 64) {
          __builtin_prefetch(y[r] + run.next_slab + at, 1, 2);
        }
        if (run.is_first) {
          const Vector start = hn::Set(Floats(), run.bias == nullptr ? 0.0f : run.bias[rows[r]]);
          for (int v = 0; v < kVectors; ++v) sums[r][v] = start;
        } else {
          for (int v = 0; v < kVectors; ++v) sums[r][v] = load(y[r], v);
        }
      }
      for (uint32_t k = 0; k < shared; ++k, step += 12) {
        const uint32_t columns = four_of(step);
        add_shared<0>(run.x, columns, values, step + 4, sums);
        add_shared<1>(run.x, columns, values, step + 4, sums);
        add_shared<2>(run.x, columns, values, step + 4, sums);
        add_shared<3>(run.x, columns, values, step + 4, sums);
      }
      for (uint32_t k = 0; k < others; ++k, step += 16) {
        const uint32_t columns[2] = {four_of(step), four_of(step + 8)};
        const uint8_t* slots[2] = {step + 4, step + 12};
        for (int r = 0; r < 2; ++r) add_own<0>(run.x, columns[r], values[r], slots[r], sums[r]);
        for (int r = 0; r < 2; ++r) add_own<1>(run.x, columns[r], values[r], slots[r], sums[r]);
        for (int r = 0; r < 2; ++r) add_own<2>(run.x, columns[r], values[r], slots[r], sums[r]);
        for (int r = 0; r < 2; ++r) add_own<3>(run.x, columns[r], values[r], slots[r], sums[r]);
      }
      for (int r = 0; r < 2; ++r) {
        for (int v = 0; v < kVectors; ++v) store(sums[r][v], y[r], v);
      }
    }
  }
}

void product_of_block(const NmMatrixForm& form, const NmPairs& pairs, int64_t block,
                      const float* values, const float* x, int64_t width, const float* bias,
                      float* y, bool prefetch_next) {
  const int64_t tiles = form.tiles(), pairs_in_block = form.rows_of_block() / 2;
  for (int64_t t = 0; t < tiles; ++t) {
    const NmTile tile = form.tile(t);
    // The next tile in memory, or the first tile of the next slab, is prefetched.
    const bool is_last = t + 1 == tiles, has_next = !is_last || prefetch_next;
    const int64_t lines = has_next ? tile.columns * (kSlabRowBytes / 64) : 0;
    const PairRun run{.pairs = &pairs,
                      .part = block * tiles + t,
                      .x = reinterpret_cast<const char*>(x) + tile.first_column * kSlabRowBytes,
                      .y = reinterpret_cast<char*>(y),
                      .bias = bias,
                      .values = values + tile.first_slot,
                      .slots = tile.slots,
                      .is_first = t == 0,
                      .ahead = reinterpret_cast<const char*>(x) +
                               (tile.first_column + tile.columns) * kSlabRowBytes,
                      .ahead_lines = (lines + pairs_in_block - 1) / pairs_in_block,
                      .next_slab = is_last && prefetch_next ? form.rows * kSlabRowBytes : 0};
    with_vectors(width, [&]<int n>(Vectors<n>) HWY_ATTR { product_of_pairs<n>(run); });
  }
}

#else

bool has_pairs() { return false; }
void product_of_block(const NmMatrixForm&, const NmPairs&, int64_t, const float*, const float*,
                      int64_t, const float*, float*, bool) {}

#endif

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(has_pairs);
HWY_EXPORT(product_of_block);

// Builds the pairs of one tile of a block of rows.
class PairWriter {
 public:
  PairWriter(const NmMatrix& matrix, NmPairs& pairs) : matrix_(matrix), pairs_(pairs) {
    pairs_.rows.reserve(static_cast<size_t>(matrix.form.rows * matrix.form.tiles()) + 8);
    pairs_.steps.resize(static_cast<size_t>(2 * matrix.form.stored()));  // at most
  }

  void add(const NmTile& tile, int64_t begin, int64_t end) {
    add_part();
    read(tile, begin, end);
    pairing_.run();
    for (const RowPairing::Pair& pair : pairing_.pairs()) {
      const auto shared = static_cast<uint32_t>(pair.shared);
      if (static_cast<int64_t>(pairs_.groups.size()) == pairs_.parts.back().first_group ||
          pairs_.groups.back().shared != shared) {
        pairs_.groups.push_back({.pairs = 0, .shared = shared});
      }
      ++pairs_.groups.back().pairs;
      pairs_.rows.push_back(static_cast<uint32_t>(begin + pair.first));
      pairs_.rows.push_back(static_cast<uint32_t>(begin + pair.second));
      write(pair);
    }
  }
  void end() {
    add_part();
    const uint32_t last = pairs_.rows.empty() ? 0 : pairs_.rows.back();
    pairs_.rows.insert(pairs_.rows.end(), 8, last);
    pairs_.steps.resize(static_cast<size_t>(bytes_));
    pairs_.steps.shrink_to_fit();
  }

 private:
  void add_part() {
    pairs_.parts.push_back({.first_group = static_cast<int64_t>(pairs_.groups.size()),
                            .first_row = static_cast<int64_t>(pairs_.rows.size()),
                            .first_byte = bytes_});
  }

  // Reads the tile's columns, ascending in each row.
  void read(const NmTile& tile, int64_t begin, int64_t end) {
    slots_ = static_cast<size_t>(tile.slots);
    pairing_.begin(end - begin, tile.columns);
    columns_.resize(static_cast<size_t>(end - begin) * slots_);
    uint8_t* into = columns_.data();
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* codes = matrix_.codes.data() + tile.first_code + row * tile.code_bytes;
      // Four slots a byte: two groups of four columns.
      for (int64_t first = 0; first < tile.columns; first += 8, into += 4) {
        const uint32_t code = *codes++;
        uint64_t bits = 0;
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t column = i / 2 * 4 + (code >> (2 * i) & 3);
          into[i] = static_cast<uint8_t>(first + column);
          bits |= uint64_t{1} << column;
        }
        pairing_.set_eight(row - begin, first, bits);
      }
    }
  }

  void write(const RowPairing::Pair& pair) {
    const uint8_t* columns[2] = {columns_.data() + pair.first * slots_,
                                 columns_.data() + pair.second * slots_};
    const uint32_t rows[2] = {pair.first, pair.second};
    for (size_t r = 0; r < 2; ++r) {
      order_[r] =
          pairing_.order(rows[1 - r], pair.shared, slots_, [&](size_t k) { return columns[r][k]; });
    }
    const auto shared = static_cast<size_t>(pair.shared);
    for (size_t k = 0; k < shared; k += 4) {
      for (size_t i = k; i < k + 4; ++i) put(columns[0][order_[0][i]]);
      for (size_t r = 0; r < 2; ++r) {
        for (size_t i = k; i < k + 4; ++i) put(static_cast<uint8_t>(order_[r][i]));
      }
    }
    for (size_t k = shared; k < slots_; k += 4) {
      for (size_t r = 0; r < 2; ++r) {
        for (size_t i = k; i < k + 4; ++i) put(columns[r][order_[r][i]]);
        for (size_t i = k; i < k + 4; ++i) put(static_cast<uint8_t>(order_[r][i]));
      }
    }
  }
  void put(uint8_t byte) { pairs_.steps[static_cast<size_t>(bytes_++)] = byte; }

  const NmMatrix& matrix_;
  NmPairs& pairs_;
  RowPairing pairing_;
  int64_t bytes_ = 0;  // written
  size_t slots_ = 0;   // per row of the tile
  std::vector<uint8_t> columns_;
  std::vector<uint32_t> order_[2];
};

}  // namespace

int64_t NmPairs::bytes() const {
  const auto of = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
  return of(parts) + of(groups) + of(rows) + of(steps);
}

bool nm_has_pairs(const NmMatrix& s) {
  const PatternShape& pattern = s.form.pattern;
  return pattern.n() == 2 && pattern.m() == 4 && pattern.unit_rows() == 1 && s.unused.empty() &&
         s.form.rows % 2 == 0 && s.form.columns % 8 == 0 && spreads_by_loads() &&
         !use_reference_kernels() && HWY_DYNAMIC_DISPATCH(has_pairs)();
}

NmPairs nm_pairs(const NmMatrix& s) {
  const NmMatrixForm& form = s.form;
  NmPairs pairs;
  PairWriter writer(s, pairs);
  const int64_t rows = form.rows_of_block();
  for (int64_t begin = 0; begin < form.rows; begin += rows) {
    const int64_t end = std::min(begin + rows, form.rows);
    for (int64_t t = 0; t < form.tiles(); ++t) writer.add(form.tile(t), begin, end);
  }
  writer.end();
  return pairs;
}

void nm_product_by_pairs(const NmMatrix& s, const NmPairs& pairs, const float* values,
                         const float* x, int64_t batch, const float* bias, float* y) {
  const auto run = HWY_DYNAMIC_DISPATCH(product_of_block);
  const NmMatrixForm& form = s.form;
  const int64_t rows = form.rows_of_block(), blocks = (form.rows + rows - 1) / rows;
  const bool is_large = slabs_exceed_cache(form.rows, form.columns, slab_count(batch));
  for_each_slab_part(batch, blocks, [&](int64_t slab, int64_t block, int64_t width, bool has_next) {
    run(form, pairs, block, values, x + slab * form.columns * kSlabWidth, width, bias,
        y + slab * form.rows * kSlabWidth, is_large && has_next);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
