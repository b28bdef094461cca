// In a slab, a feature's examples are contiguous. One pass counts the nonzero ones, which gives
// all places; the other writes values and offsets there, 16 at a time, compressed in a
// register.
#include "lacuna/framework/kernels/csr/feature_stream.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/slab.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/feature_stream.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef LACUNA_FEATURE_STREAM_RUN
#define LACUNA_FEATURE_STREAM_RUN
namespace lacuna {
namespace {

// Features [begin, end) of a tile that consists of slabs [first_slab, end_slab).
struct FeatureRun {
  const float* slabs = nullptr;
  int64_t features = 0;
  int64_t begin = 0, end = 0;
  int64_t first_slab = 0, end_slab = 0;
  const int64_t* places = nullptr;  // by feature, the place of its first value
  float* values = nullptr;
  uint16_t* offsets = nullptr;

  const float* row(int64_t slab, int64_t feature) const {
    return slabs + (slab * features + feature) * kSlabWidth;
  }
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Counts the nonzeros in each of `rows` slab rows.
void count_rows(const float* x, int64_t rows, uint8_t* counts) {
  for (int64_t row = 0; row < rows; ++row, x += kSlabWidth) {
    size_t count = 0;
#if HWY_TARGET == HWY_SCALAR
    for (int64_t i = 0; i < kSlabWidth; ++i) count += x[i] != 0.0f ? 1 : 0;
#else
    const hn::CappedTag<float, 16> f;
    const auto lanes = static_cast<int64_t>(hn::Lanes(f));
    for (int64_t i = 0; i < kSlabWidth; i += lanes) {
      count += hn::CountTrue(f, hn::Not(hn::Eq(hn::LoadU(f, x + i), hn::Zero(f))));
    }
#endif
    counts[row] = static_cast<uint8_t>(count);
  }
}

// Writes the nonzeros of a slab row, and their numbers from `first` on; returns their count.
// Nothing is written after them, because other rows may already be there.
HWY_INLINE int64_t write_row(const float* x, int64_t first, float* values, uint16_t* offsets) {
  int64_t count = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::FixedTag<float, 16> f;
  const hn::RebindToSigned<decltype(f)> i32;
  const hn::Rebind<uint16_t, decltype(f)> u16;
  for (int64_t i = 0; i < kSlabWidth; i += 16) {
    const auto some = hn::LoadU(f, x + i);
    const auto mask = hn::Not(hn::Eq(some, hn::Zero(f)));  // NaN is kept
    const size_t kept = hn::CountTrue(f, mask);
    const auto numbers = hn::Iota(i32, static_cast<int32_t>(first + i));
    const auto packed = hn::Compress(numbers, hn::RebindMask(i32, mask));
    // Compresses in a register, then stores with a mask: a compressing store takes far longer.
    hn::BlendedStore(hn::Compress(some, mask), hn::FirstN(f, kept), f, values + count);
    hn::BlendedStore(hn::DemoteTo(u16, packed), hn::FirstN(u16, kept), u16, offsets + count);
    count += static_cast<int64_t>(kept);
  }
#else
  for (int64_t i = 0; i < kSlabWidth; ++i) {
    if (x[i] == 0.0f) continue;
    values[count] = x[i];
    offsets[count++] = static_cast<uint16_t>(first + i);
  }
#endif
  return count;
}

void write_features(const FeatureRun& run) {
  for (int64_t feature = run.begin; feature < run.end; ++feature) {
    int64_t place = run.places[feature];
    for (int64_t slab = run.first_slab; slab < run.end_slab; ++slab) {
      place += write_row(run.row(slab, feature), (slab - run.first_slab) * kSlabWidth,
                         run.values + place, run.offsets + place);
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(count_rows);
HWY_EXPORT(write_features);

// Numbers of slab rows that one thread counts, and of features that it writes, at a time: fewer
// take less time than starting a second thread.
constexpr int64_t kCountedAtOnce = 2048, kWrittenAtOnce = 512;

Array<uint8_t> counts_of(const float* slabs, int64_t rows) {
  const auto count = HWY_DYNAMIC_DISPATCH(count_rows);
  Array<uint8_t> counts(static_cast<size_t>(rows));
  parallel_for(rows, kCountedAtOnce, [&](int64_t begin, int64_t end) {
    count(slabs + begin * kSlabWidth, end - begin, counts.data() + begin);
  });
  return counts;
}

// Whole slabs, with about as many examples as a stream of this density should have.
int64_t tile_examples(int64_t batch, int64_t features, int64_t nnz) {
  constexpr int64_t kNear = 128;
  const int64_t chosen = internal::choose_tile(batch, features, nnz);
  if (chosen <= kNear + kSlabWidth / 2) return kNear;
  constexpr int64_t kMost = (int64_t{1} << 16) / kSlabWidth * kSlabWidth;
  return std::min((chosen + kSlabWidth / 2) / kSlabWidth * kSlabWidth, kMost);
}

}  // namespace

FeatureStream feature_stream(const float* slabs, int64_t batch, int64_t features) {
  const int64_t slab_total = slab_count(batch);
  const Array<uint8_t> counts = counts_of(slabs, slab_total * features);
  int64_t nnz = 0;
  for (const uint8_t count : counts) nnz += count;
  FeatureStream result;
  const int64_t tile_columns = tile_examples(batch, features, nnz);
  CsrStream& stream = result.stream = internal::sized_stream(features, batch, nnz, tile_columns);
  result.values.resize(static_cast<size_t>(nnz) + 4);
  std::fill_n(result.values.end() - 4, 4, 0.0f);

  const int64_t tiles = internal::count_tiles(stream), slabs_of_tile = tile_columns / kSlabWidth;
  internal::Arrangement arrangement(stream);
  arrangement.begin_block(0, features);
  std::vector<internal::Segment> segments;
  Array<int64_t> places(static_cast<size_t>(tiles * features));
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t first = tile * slabs_of_tile, end = std::min(first + slabs_of_tile, slab_total);
    segments.clear();
    for (int64_t feature = 0; feature < features; ++feature) {
      uint32_t length = 0;
      for (int64_t slab = first; slab < end; ++slab) {
        length += counts[static_cast<size_t>(slab * features + feature)];
      }
      if (length == 0 && tile > 0) continue;
      segments.push_back({.row = static_cast<uint32_t>(feature), .length = length});
    }
    int64_t* const of_tile = places.data() + tile * features;
    std::fill_n(of_tile, features, int64_t{0});
    arrangement.add_tile(
        tile * tile_columns, segments,
        [&](const internal::Segment& segment, int64_t place) { of_tile[segment.row] = place; });
  }
  arrangement.end_block();
  arrangement.end_stream();

  const auto write = HWY_DYNAMIC_DISPATCH(write_features);
  const int64_t parts = (features + kWrittenAtOnce - 1) / kWrittenAtOnce;
  parallel_blocks(tiles * parts, [&](int64_t unit) {
    const int64_t tile = unit / parts, begin = unit % parts * kWrittenAtOnce;
    const int64_t first = tile * slabs_of_tile;
    write({.slabs = slabs,
           .features = features,
           .begin = begin,
           .end = std::min(begin + kWrittenAtOnce, features),
           .first_slab = first,
           .end_slab = std::min(first + slabs_of_tile, slab_total),
           .places = places.data() + tile * features,
           .values = result.values.data(),
           .offsets = stream.offsets.data()});
  });
  return result;
}

}  // namespace lacuna
#endif  // HWY_ONCE
