// The weight gradient at the nonzeros, over batch slabs. See csr.cpp.
#include "lacuna/framework/kernels/csr/csr_gradient.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr_reference.hpp"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/batch_lanes.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#ifndef LACUNA_CSR_GRADIENT_REFERENCE
#define LACUNA_CSR_GRADIENT_REFERENCE
namespace lacuna {
namespace {

// `lanes`: BatchLanes of the rows, or null.
void reference_gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy,
                              const float* x, int64_t width, bool accumulate, float* gradient,
                              float* lanes, bool prefetch_next) {
  if (lanes != nullptr) {
    csr_for_each_first_row(
        s, block, [&](int64_t row) { reference::add_to_lanes(dy, row, row + 1, width, lanes); });
  }
  reference::csr_gradient_block(s, block, dy, x, width, accumulate, gradient, prefetch_next);
}

}  // namespace
}  // namespace lacuna
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/csr_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/csr/csr_two_slabs.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t width, bool accumulate, float* gradient, float* lanes, bool) {
  reference_gradient_block(s, block, dy, x, width, accumulate, gradient, lanes, false);
}
#else

template <int kVectors, int kCount>
HWY_INLINE Vector block_sums(const Vector (&dy)[kVectors], const char* x, const uint16_t* offsets) {
  const uint64_t word = packed(offsets);
  const Vector zero = hn::Zero(Floats());
  const Vector a = dot(dy, x + row_offset<0>(word));
  const Vector b = kCount > 1 ? dot(dy, x + row_offset<1>(word)) : zero;
  const Vector c = kCount > 2 ? dot(dy, x + row_offset<2>(word)) : zero;
  const Vector d = kCount > 3 ? dot(dy, x + row_offset<3>(word)) : zero;
  return block_sums_of(a, b, c, d);
}

// Writes or adds the first kCount sums: as put(), but with a mask for the rest of a row.
template <int kCount, bool kAdd, class V>
HWY_INLINE void put_first(V sums, float* gradient) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::DFromV<V> d;
  if constexpr (kCount == hn::MaxLanes(d)) {
    if constexpr (kAdd) sums = hn::Add(sums, hn::LoadU(d, gradient));
    hn::StoreU(sums, d, gradient);
  } else {
    const auto first = hn::FirstN(d, kCount);
    if constexpr (kAdd) sums = hn::Add(sums, hn::MaskedLoad(first, d, gradient));
    hn::BlendedStore(sums, first, d, gradient);
  }
#else
  put<kCount, kAdd>(sums, gradient);
#endif
}

// kCount nonzeros of a row, at most eight.
template <int kCount, bool kAdd, int kVectors>
HWY_INLINE void gradient_of(const Vector (&dy)[kVectors], const char* x, const uint16_t* offsets,
                            float* gradient) {
  if constexpr (kCount <= 4) {
    put_first<kCount, kAdd>(add_blocks(block_sums<kVectors, kCount>(dy, x, offsets)), gradient);
  } else {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    put_first<kCount, kAdd>(add_blocks_of_two(block_sums<kVectors, 4>(dy, x, offsets),
                                              block_sums<kVectors, kCount - 4>(dy, x, offsets + 4)),
                            gradient);
#else
    gradient_of<4, kAdd>(dy, x, offsets, gradient);
    gradient_of<kCount - 4, kAdd>(dy, x, offsets + 4, gradient + 4);
#endif
  }
}

// kLength: nonzeros of each row, or −1 − (length % 8).
template <int kVectors, int kLength, bool kAdd>
HWY_NOINLINE void gradient_group(const GradientRun& run) {
  const int64_t length = length_of<kLength>(run), whole = length / 8 * 8;
  constexpr int kRest = kLength >= 0 ? kLength % 8 : -1 - kLength;
  const char* ahead_x = run.ahead;
  for (int64_t i = 0; i < run.count; ++i) {
    if (i % 2 == 0) ask_ahead(run, ahead_x);
    const char* at = run.y + run.rows[i] * kSlabRowBytes;
    const char* ahead = run.y + run.rows[i + 2] * kSlabRowBytes;
    for (int v = 0; v < kVectors * kVectorBytes; v += 64) __builtin_prefetch(ahead + v);
    if (run.next_slab != 0) {
      for (int v = 0; v < kSlabRowBytes; v += 64) __builtin_prefetch(at + run.next_slab + v, 0, 2);
    }
    Vector dy[kVectors];
    for (int v = 0; v < kVectors; ++v) dy[v] = load(at, v);
    if (run.lanes != nullptr) add_to_lanes(dy, run.lanes + run.rows[i] * BatchLanes::kLanes);
    const uint16_t* offsets = run.offsets + i * length;
    float* gradient = run.gradient + i * length;
    if constexpr (kLength >= 0) {
      HWY_UNROLL(4)
      for (int64_t k = 0; k + 8 <= kLength; k += 8) {
        gradient_of<8, kAdd>(dy, run.x, offsets + k, gradient + k);
      }
    } else {
      for (int64_t k = 0; k < whole; k += 8) {
        gradient_of<8, kAdd>(dy, run.x, offsets + k, gradient + k);
      }
    }
    if constexpr (kRest > 0) {
      gradient_of<kRest, kAdd>(dy, run.x, offsets + whole, gradient + whole);
    }
  }
}

// The function for a group: one for each length up to kUnrolled, otherwise one for each rest.
template <int kVectors, bool kAdd, int... lengths>
auto gradient_of_length(int64_t length, std::integer_sequence<int, lengths...>) {
  using Function = void (*)(const GradientRun&);
  static constexpr Function by_rest[] = {
      gradient_group<kVectors, -1, kAdd>, gradient_group<kVectors, -2, kAdd>,
      gradient_group<kVectors, -3, kAdd>, gradient_group<kVectors, -4, kAdd>,
      gradient_group<kVectors, -5, kAdd>, gradient_group<kVectors, -6, kAdd>,
      gradient_group<kVectors, -7, kAdd>, gradient_group<kVectors, -8, kAdd>};
  if constexpr (sizeof...(lengths) > 0) {
    static constexpr Function by_length[] = {gradient_group<kVectors, lengths, kAdd>...};
    if (length < static_cast<int64_t>(sizeof...(lengths))) return by_length[length];
  }
  return by_rest[length % 8];
}

void gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy, const float* x,
                    int64_t width, bool accumulate, float* gradient, float* lanes,
                    bool prefetch_next) {
  const int64_t next_slab = prefetch_next ? s.rows * kSlabRowBytes : 0;
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      const Run run{.x = reinterpret_cast<const char*>(x + c),
                    .y = const_cast<char*>(reinterpret_cast<const char*>(dy + c)),
                    .gradient = gradient,
                    .next_slab = next_slab};
      const bool add = accumulate || c > 0;
      constexpr int kLengths = n == kPass && kUnrolled > 0 ? kUnrolled + 1 : 0;
      const std::make_integer_sequence<int, kLengths> lengths;
      for_each_group<Pairs::Joined>(s, block, run, [&](const Run& group, bool is_first) HWY_ATTR {
        const GradientRun r(group, is_first ? lanes : nullptr);  // all rows are in the first tile
        if (r.length == 0 && r.lanes == nullptr) return;
        (add ? gradient_of_length<n, true>(r.length, lengths)
             : gradient_of_length<n, false>(r.length, lengths))(r);
      });
    });
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

bool takes_two_slabs() { return kTakesTwoSlabs; }

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(gradient_block);
HWY_EXPORT(gradient_of_two_slabs);
HWY_EXPORT(takes_two_slabs);

// Whether full slabs are processed in pairs: if a tile's rows of both slabs stay in the first-level
// cache, and rows have so many nonzeros in the tile that halving the reductions saves more than the
// repeated loads cost.
bool goes_by_two_slabs(const CsrStream& s) {
  return internal::gradient_takes_two_slabs() && s.tile_columns <= internal::two_slabs_tile() &&
         internal::has_many_nonzeros(s);
}

constexpr int64_t kLine = 16;  // floats of a cache line

// Parts of a batch whose sums are kept apart until the end, so that a thread reads the slabs that
// it has written, and not also those of other cores. Only for narrow matrices: others read little
// for each multiply-add, and their sums are large.
int64_t parts_of_batch(const CsrStream& s, int64_t batch) {
  constexpr int64_t kSlabs = 6, kMost = 4, kNonzeros = 1 << 16, kRows = 1 << 12;
  constexpr int64_t kMultiplied = 1 << 20;  // what is worth a part
  if (s.blocks.size() != 1 || s.nnz > kNonzeros || s.rows > kRows) return 1;
  const int64_t slabs = slab_count(batch), worth = s.nnz * batch / kMultiplied;
  return std::max<int64_t>(std::min({slabs / kSlabs, worth, kMost}), 1);
}

// The first slab of a part: an even one.
int64_t begin_of_part(int64_t part, int64_t parts, int64_t slabs) {
  return part == parts ? slabs : slabs / 2 * part / parts * 2;
}

}  // namespace

bool internal::gradient_takes_two_slabs() {
  // With 32 KiB, the tile would be too short for the products.
  return first_level_bytes() >= 48 << 10 && !use_reference_kernels() &&
         HWY_DYNAMIC_DISPATCH(takes_two_slabs)();
}

int64_t internal::two_slabs_tile() {
  // A sixteenth of the cache is left for other data.
  return first_level_bytes() / 16 * 15 / (2 * kSlabRowBytes);
}

void csr_gradient(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                  Accumulate accumulate, float* gradient) {
  csr_gradient(s, dy, x, batch, accumulate, gradient, nullptr);
}

void csr_gradient(const CsrStream& s, const float* dy, const float* x, int64_t batch,
                  Accumulate accumulate, float* gradient, float* dy_sums) {
  const bool adds = accumulate == Accumulate::Yes;
  if (batch == 0 && !adds) std::fill_n(gradient, s.nnz, 0.0f);
  const auto run =
      use_reference_kernels() ? reference_gradient_block : HWY_DYNAMIC_DISPATCH(gradient_block);
  const auto run_two = HWY_DYNAMIC_DISPATCH(gradient_of_two_slabs);
  const bool by_two = goes_by_two_slabs(s);
  const int64_t slabs = slab_count(batch), full_slabs = batch / kSlabWidth;
  const int64_t batch_parts = parts_of_batch(s, batch);
  const int64_t row_parts = (csr_gradient_parts(s, batch) + batch_parts - 1) / batch_parts;
  const auto units = static_cast<int64_t>(s.blocks.size()) * row_parts;
  const int64_t stride = (s.nnz + kLine - 1) / kLine * kLine;
  Array<float> others(static_cast<size_t>((batch_parts - 1) * stride));
  BatchLanes sums(dy_sums, s.rows, batch_parts);
  parallel_blocks(batch_parts * units, [&](int64_t at) {
    const int64_t batch_part = at / units, unit = at % units;
    const CsrBlock& block = s.blocks[static_cast<size_t>(unit / row_parts)];
    const CsrBlock part =
        row_parts == 1 ? block : csr_part(s, block, unit % row_parts, row_parts, CsrCutAt::Rows);
    float* lanes = nullptr;
    csr_for_each_first_row(s, part,
                           [&](int64_t row) { lanes = sums.begin(row, row + 1, batch_part); });
    float* into = batch_part == 0 ? gradient : others.data() + (batch_part - 1) * stride;
    const int64_t first = begin_of_part(batch_part, batch_parts, slabs),
                  end = begin_of_part(batch_part + 1, batch_parts, slabs);
    int64_t slab = first;
    const auto added = [&] { return slab > first || (adds && batch_part == 0); };
    for (; by_two && slab + 2 <= std::min(end, full_slabs); slab += 2) {
      run_two(s, part, dy + slab * s.rows * kSlabWidth, x + slab * s.columns * kSlabWidth, added(),
              into, lanes, slab + 4 <= std::min(end, full_slabs));
    }
    for (; slab < end; ++slab) {
      run(s, part, dy + slab * s.rows * kSlabWidth, x + slab * s.columns * kSlabWidth,
          std::min(kSlabWidth, batch - slab * kSlabWidth), added(), into, lanes, slab + 1 < end);
    }
    if (batch_parts == 1)
      csr_for_each_first_row(s, part, [&](int64_t row) { sums.end(row, row + 1); });
  });
  if (batch_parts == 1) return;
  constexpr int64_t kRows = 128, kSums = 4096;
  parallel_for(s.rows, kRows, [&](int64_t begin, int64_t end) { sums.end(begin, end); });
  parallel_for(s.nnz, kSums, [&](int64_t begin, int64_t end) {
    for (int64_t part = 0; part + 1 < batch_parts; ++part) {
      const float* other = others.data() + part * stride;
      for (int64_t i = begin; i < end; ++i) gradient[i] += other[i];
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
