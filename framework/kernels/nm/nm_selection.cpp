// Selects N:M masks: see nm_selection.hpp and nm_select_part.inc.
#include "lacuna/framework/kernels/nm/nm_selection.hpp"

#include <bit>
#include <utility>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/nm/nm_selection_reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/nm/nm_selection.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/nm/nm_select_part.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
bool select_parts(int, int, const float*, int64_t, uint64_t*) { return false; }
#else

// `count` parts; false where there is no code for the format.
bool select_parts(int n, int m, const float* w, int64_t count, uint64_t* words) {
  return with_format(n, m, [&]<int kN, int kM>(Format<kN, kM>) HWY_ATTR {
    for (int64_t part = 0; part < count; ++part) {
      select_part<kN, kM>(w + part * kPart, reinterpret_cast<uint8_t*>(words + 2 * part));
    }
  });
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(select_parts);

constexpr int64_t kPart = NmMatrixForm::kMostTileColumns;

// Sets bits [first, first + m) of the words; they may cross a word boundary.
void set_bits(uint64_t* words, int64_t first, uint32_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    const int64_t at = first + std::countr_zero(bits);
    words[at / 64] |= uint64_t{1} << (at % 64);
  }
}

// Floats [0, count) group by group.
void select_plainly(const NmMatrixForm& form, const float* w, int64_t count, uint64_t* words) {
  for (int64_t at = 0; at < count; at += form.m()) {
    set_bits(words, at, reference::select_of_group(w + at, form.n(), form.m()));
  }
}

}  // namespace

BitMask nm_select(const NmMatrixForm& form, std::span<const float> weights) {
  form.require_weights(weights.size());
  const auto run = HWY_DYNAMIC_DISPATCH(select_parts);
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<uint64_t> words(static_cast<size_t>((size + 63) / 64) + 1);
  const int64_t grain = 64 * kPart * form.m();  // whole groups, parts and words
  parallel_for(size, grain, [&](int64_t begin, int64_t end) {
    const float* w = weights.data() + begin;
    uint64_t* to = words.data() + begin / 64;
    const int64_t parts = (end - begin) / kPart;
    const bool is_done = !use_reference_kernels() && run(form.n(), form.m(), w, parts, to);
    const int64_t done = is_done ? parts * kPart : 0;
    select_plainly(form, w + done, end - begin - done, to + done / 64);
  });
  words.pop_back();
  return BitMask::from_words(size, std::move(words));
}

}  // namespace lacuna
#endif  // HWY_ONCE
