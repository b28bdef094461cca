// Copies and sums along rows. Each row has its own sum: the places of each id are found by
// counting, and threads divide the rows.
#include "lacuna/framework/kernels/rowwise/embedding.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/rowwise/embedding.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void add_row(const float* x, float* sum, int64_t count) {
  map([](Vector u, Vector v) HWY_ATTR { return hn::Add(u, v); }, count, sum, sum, x);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(add_row);

void add_row_reference(const float* x, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

// Places of all ids except the skipped one, sorted by id, then ascending; those of id are from
// begin[id] to begin[id + 1].
struct PlacesById {
  explicit PlacesById(const EmbeddingProblem& p)
      : begin(static_cast<size_t>(p.rows) + 1), places(static_cast<size_t>(p.count)) {
    for (int64_t i = 0; i < p.count; ++i) {
      if (p.ids[i] != p.skipped_id) ++begin[static_cast<size_t>(p.ids[i]) + 1];
    }
    for (size_t id = 1; id < begin.size(); ++id) begin[id] += begin[id - 1];
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (int64_t i = 0; i < p.count; ++i) {
      if (p.ids[i] == p.skipped_id) continue;
      places[static_cast<size_t>(next[static_cast<size_t>(p.ids[i])]++)] = i;
    }
  }

  std::vector<int64_t> begin, places;
};

}  // namespace

void gather_rows(const EmbeddingProblem& p, const float* table, float* y) {
  parallel_for(p.count, rows_per_task(p.features), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(table + p.ids[i] * p.features, p.features, y + i * p.features);
    }
  });
}

void add_rows(const EmbeddingProblem& p, const float* dy, Accumulate accumulate, float* gradient) {
  const auto add = use_reference_kernels() ? add_row_reference : HWY_DYNAMIC_DISPATCH(add_row);
  const PlacesById of(p);
  parallel_for(p.rows, rows_per_task(p.features), [&](int64_t begin, int64_t end) {
    for (int64_t id = begin; id < end; ++id) {
      float* sum = gradient + id * p.features;
      if (accumulate == Accumulate::No) std::fill_n(sum, p.features, 0.0f);
      if (id == p.skipped_id) continue;
      const int64_t last = of.begin[static_cast<size_t>(id) + 1];
      for (int64_t i = of.begin[static_cast<size_t>(id)]; i < last; ++i) {
        add(dy + of.places[static_cast<size_t>(i)] * p.features, sum, p.features);
      }
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
