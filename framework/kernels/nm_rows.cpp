// The N:M products for batches of a few examples, row-major: see nm.h.
//
// Where groups of M inputs have M/2 or M/4 slots, as most formats have, a vector's worth of slots
// takes its inputs from two or four vectors of them, by in-register lookups; codes are spread to
// lanes by shifts. Gather instructions would be slower than scalar code where processors have had
// them mended. Other formats run scalar code, compiled for each instruction set for its fused
// multiply-add.
#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/nm.h"
#include "lacuna/framework/kernels/nm_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));

// The slots of one row in one tile.
struct NmRow {
  const uint8_t* codes = nullptr;
  int64_t slots = 0;
  int64_t m = 0, in_group = 0;  // columns and slots of a group
};

// Calls `one(slot, column)` for slots from `first` on, a multiple of four and of a group's slots.
template <class Code, class One>
HWY_INLINE void for_each_column(const NmRow& row, int64_t first, const One& one) {
  int64_t group = first / row.in_group * row.m;
  const int64_t fours = std::max(row.in_group / 4, int64_t{1});
  int64_t left = fours;
  for (int64_t at = first; at < row.slots; at += 4) {
    const uint64_t word = Code::word(row.codes + at / 4 * Code::kBytesOfFour);
    const int64_t columns[4] = {
        group + Code::template column<0, 0>(word),
        group + Code::template column<1, 0>(word) + Code::kGroups / 4 * row.m,
        group + Code::template column<2, 0>(word) + Code::kGroups / 2 * row.m,
        group + Code::template column<3, 0>(word) + 3 * Code::kGroups / 4 * row.m};
    const int64_t count = std::min(row.slots - at, int64_t{4});
    for (int64_t i = 0; i < count; ++i) one(at + i, columns[i]);
    if (--left == 0) {
      group += Code::kGroups * row.m;
      left = fours;
    }
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr bool kHasLookup = true;
using Integers = hn::RebindToSigned<Floats>;

// Takes vectors of inputs by their codes, where a group has 1/kParts as many slots as columns.
template <class Code, int kParts>
class Lookup {
 public:
  HWY_INLINE explicit Lookup(const NmForm& form) {
    HWY_ALIGN int32_t first[kLanes], part[kLanes];
    HWY_ALIGN uint32_t shift[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      first[lane] = lane % kInPart / form.slots() * form.m;
      shift[lane] = static_cast<uint32_t>(Code::kBits * lane % 32);
      part[lane] = lane / kInPart;
    }
    first_ = hn::Load(Integers(), first);
    shift_ = hn::Load(hn::RebindToUnsigned<Integers>(), shift);
    part_ = hn::Load(Integers(), part);
  }

  /// The inputs of kLanes slots of a row from slot `at` on. *Requires* that x is the tile's first.
  HWY_INLINE Vector operator()(const NmRow& row, int64_t at, const float* x) const {
    x += at * kParts;
    const auto codes = codes_of(row.codes + at * Code::kBits / 8);
    const auto indices = hn::IndicesFromVec(Floats(), hn::Add(codes, first_));
    Vector taken = hn::TableLookupLanes(hn::LoadU(Floats(), x), indices);
    for (int i = 1; i < kParts; ++i) {
      const Vector other = hn::TableLookupLanes(hn::LoadU(Floats(), x + i * kLanes), indices);
      const auto is_other = hn::Eq(part_, hn::Set(Integers(), i));
      taken = hn::IfThenElse(hn::RebindMask(Floats(), is_other), other, taken);
    }
    return taken;
  }

 private:
  static constexpr int kInPart = kLanes / kParts;

  HWY_INLINE hn::Vec<Integers> codes_of(const uint8_t* codes) const {
    const hn::RebindToUnsigned<Integers> u;
    constexpr size_t kBytes = kLanes * Code::kBits / 8;
    uint32_t words[2] = {};
    std::memcpy(words, codes, kBytes);
    auto all = hn::Set(u, words[0]);
    if constexpr (kBytes > 4) {
      const hn::Half<decltype(u)> half;
      all = hn::Combine(u, hn::Set(half, words[1]), hn::Set(half, words[0]));
    }
    const auto mask = hn::Set(u, (1u << Code::kBits) - 1);
    return hn::BitCast(Integers(), hn::And(hn::Shr(all, shift_), mask));
  }

  hn::Vec<Integers> first_, part_;
  hn::Vec<hn::RebindToUnsigned<Integers>> shift_;
};
#else
constexpr bool kHasLookup = false;
template <class Code, int kParts>
class Lookup;
#endif

// Calls `body(Code, Parts<n>)`: n vectors of inputs for a vector of slots, 0 for scalar code.
template <int n>
struct Parts {};
template <class Body>
HWY_INLINE void with_parts(const NmForm& form, const Body& body) {
  with_code(form, [&]<class Code>(Code code) HWY_ATTR {
    if constexpr (kHasLookup) {
      const int parts = form.m % form.slots() == 0 ? form.m / form.slots() : 0;
      const bool is_whole = parts > 0 && kLanes / parts % form.slots() == 0;
      if (is_whole && parts == 2) return body(code, Parts<2>());
      if (is_whole && parts == 4) return body(code, Parts<4>());
    }
    body(code, Parts<0>());
  });
}

// The loop over rows [begin, end): `body(row, its number, first slot, first column)`.
template <class Body>
HWY_INLINE void for_each_row(const NmMatrix& s, int64_t begin, int64_t end, const Body& body) {
  const int64_t tiles = s.form.tiles();
  for (int64_t t = 0; t < tiles; ++t) {
    const NmTile tile = s.form.tile(t);
    for (int64_t r = begin; r < end; ++r) {
      const NmRow row{.codes = s.codes.data() + tile.first_code + r * tile.code_bytes,
                      .slots = tile.slots,
                      .m = s.form.m,
                      .in_group = s.form.slots()};
      body(row, r, tile.first_slot + r * tile.slots, tile.first_column);
    }
  }
}

// Rows' slots that fill vectors: adds their products to `sum`, and returns how many they are.
template <class Take>
HWY_INLINE int64_t dot(const NmRow& row, const Take& take, const float* values, const float* x,
                       float& sum) {
  Vector total = hn::Zero(Floats());
  int64_t at = 0;
  for (; at + kLanes <= row.slots; at += kLanes) {
    total = hn::MulAdd(hn::LoadU(Floats(), values + at), take(row, at, x), total);
  }
  sum += hn::GetLane(hn::SumOfLanes(Floats(), total));
  return at;
}

// The same of the weight gradient: writes it, or adds to it.
template <bool kAdd, class Take>
HWY_INLINE int64_t scale(const NmRow& row, const Take& take, float factor, const float* x,
                         float* gradient) {
  const Vector factors = hn::Set(Floats(), factor);
  int64_t at = 0;
  for (; at + kLanes <= row.slots; at += kLanes) {
    const Vector before = kAdd ? hn::LoadU(Floats(), gradient + at) : hn::Zero(Floats());
    hn::StoreU(hn::MulAdd(factors, take(row, at, x), before), Floats(), gradient + at);
  }
  return at;
}

// Calls `body(take)`, where `take` is null or takes inputs by vectors.
template <class Code, int kParts, class Body>
HWY_INLINE void with_lookup(const NmForm& form, const Body& body) {
  if constexpr (kParts > 0) {
    body(Lookup<Code, kParts>(form));
  } else {
    body(nullptr);
  }
}

template <class Code, int kParts>
void product_by_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                     const float* x, const float* bias, float* y) {
  with_lookup<Code, kParts>(s.form, [&](const auto& take) HWY_ATTR {
    for_each_row(s, begin, end,
                 [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                   const float start = column > 0 ? y[r] : bias == nullptr ? 0.0f : bias[r];
                   float sums[4] = {};  // side by side they hide the latency of an addition
                   int64_t done = 0;
                   if constexpr (kParts > 0)
                     done = dot(row, take, values + slot, x + column, sums[0]);
                   for_each_column<Code>(row, done, [&](int64_t at, int64_t c) HWY_ATTR {
                     sums[at % 4] += values[slot + at] * x[column + c];
                   });
                   y[r] = start + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
                 });
  });
}

template <class Code, int kParts, bool kAdd>
void gradient_by_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                      const float* x, float* gradient) {
  with_lookup<Code, kParts>(s.form, [&](const auto& take) HWY_ATTR {
    for_each_row(s, begin, end,
                 [&](const NmRow& row, int64_t r, int64_t slot, int64_t column) HWY_ATTR {
                   float* into = gradient + slot;
                   int64_t done = 0;
                   if constexpr (kParts > 0) done = scale<kAdd>(row, take, dy[r], x + column, into);
                   for_each_column<Code>(row, done, [&](int64_t at, int64_t c) HWY_ATTR {
                     const float product = dy[r] * x[column + c];
                     into[at] = kAdd ? into[at] + product : product;
                   });
                 });
  });
}

void product_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                        const float* x, int64_t batch, const float* bias, float* y) {
  with_parts(s.form, [&]<class Code, int n>(Code, Parts<n>) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      product_by_rows<Code, n>(s, begin, end, values, x + example * s.form.columns, bias,
                               y + example * s.form.rows);
    }
  });
}

void gradient_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                         const float* x, int64_t batch, bool accumulate, float* gradient) {
  with_parts(s.form, [&]<class Code, int n>(Code, Parts<n>) HWY_ATTR {
    for (int64_t example = 0; example < batch; ++example) {
      const float* out = dy + example * s.form.rows;
      const float* in = x + example * s.form.columns;
      if (accumulate || example > 0) {
        gradient_by_rows<Code, n, true>(s, begin, end, out, in, gradient);
      } else {
        gradient_by_rows<Code, n, false>(s, begin, end, out, in, gradient);
      }
    }
  });
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block_rows);
HWY_EXPORT(gradient_block_rows);

}  // namespace

void nm_product_rows(const NmMatrix& s, const float* values, const float* x, int64_t batch,
                     const float* bias, float* y) {
  const auto run = use_reference_kernels() ? reference::nm_product_block_rows
                                           : HWY_DYNAMIC_DISPATCH(product_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(),
               [&](int64_t begin, int64_t end) { run(s, begin, end, values, x, batch, bias, y); });
}

void nm_gradient_rows(const NmMatrix& s, const float* dy, const float* x, int64_t batch,
                      bool accumulate, float* gradient) {
  if (batch == 0 && !accumulate) std::fill_n(gradient, s.form.stored(), 0.0f);
  const auto run = use_reference_kernels() ? reference::nm_gradient_block_rows
                                           : HWY_DYNAMIC_DISPATCH(gradient_block_rows);
  parallel_for(s.form.rows, s.form.rows_of_block(), [&](int64_t begin, int64_t end) {
    run(s, begin, end, dy, x, batch, accumulate, gradient);
  });
  for (const uint32_t slot : s.unused) gradient[slot] = 0.0f;
}

}  // namespace lacuna
#endif  // HWY_ONCE
