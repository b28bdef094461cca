// Attention as tasks. A task of the forward pass is one query head of an example; of the backward
// pass, one key head with all its query heads, whose gradients of keys and values are added in
// order. If blocks of 64 tokens are slabs, kernels read and write the slabs directly; otherwise a
// task copies its head's lanes into memory that its thread keeps.
#include "lacuna/framework/kernels/attention/attention.hpp"

#include <algorithm>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/attention/attention_head.hpp"
#include "lacuna/framework/kernels/attention/attention_plain.hpp"
#include "lacuna/framework/kernels/attention/head_lanes.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna {
namespace {

// Floats from a feature's lanes to the next one's: an odd number of cache lines, so that features
// do not share a few sets of a cache.
int64_t lane_stride(int64_t tokens) { return (tokens + 15) / 16 / 2 * 32 + 16; }

float* kept_memory(int64_t floats) {
  thread_local Array<float> memory;
  if (memory.size() < static_cast<size_t>(floats)) {
    memory = {};
    memory = Array<float>(static_cast<size_t>(floats));
  }
  return memory.data();
}

// The heads of an example in a task: up to `copies` of them are copied.
class TaskLanes {
 public:
  TaskLanes(const AttentionProblem& problem, Order order, int64_t example, int64_t copies)
      : problem_(problem), example_(example), stride_(lane_stride(problem.length)) {
    if (order == Order::BatchSlabs && lies_on_slabs(problem.length)) return;
    next_ = kept_memory(copies * problem.head_features * stride_);
  }

  // Head number `index` of those in x.
  ConstLanes read(const Tensor& x, int64_t index) {
    if (next_ == nullptr) return on_slabs(x.data(x.order()), x, index);
    const Lanes lanes = copy();
    read_head(x, place(index), stride_, lanes.data);
    return {.data = lanes.data, .row = lanes.row, .block = lanes.block};
  }
  // Where the result is computed before `write` stores it.
  Lanes result(Tensor& x, int64_t index) {
    return next_ == nullptr ? on_slabs(x.mutable_data(x.order()), x, index) : copy();
  }
  void write(const Lanes& lanes, Tensor& x, int64_t index) const {
    if (next_ != nullptr) write_head(lanes.data, stride_, place(index), x);
  }

  // Later copies overwrite those after this mark.
  float* mark() const { return next_; }
  void return_to(float* mark) { next_ = mark; }

 private:
  HeadPlace place(int64_t index) const {
    return {.first_row = example_ * problem_.length,
            .rows = problem_.length,
            .first_column = index * problem_.head_features,
            .columns = problem_.head_features};
  }
  template <class Float>
  HeadLanes<Float> on_slabs(Float* data, const Tensor& x, int64_t index) const {
    const int64_t features = x.shape().features(), row = example_ * problem_.length;
    const int64_t feature = row / kSlabWidth * features + index * problem_.head_features;
    return {.data = data + feature * kSlabWidth + row % kSlabWidth,
            .row = kSlabWidth,
            .block = features * kSlabWidth};
  }
  Lanes copy() {
    float* data = next_;
    next_ += problem_.head_features * stride_;
    return {.data = data, .row = stride_, .block = kAttentionBlock};
  }

  const AttentionProblem& problem_;
  int64_t example_, stride_;
  float* next_ = nullptr;
};

// Records the place in slabs of an example's head, which the next task uses.
class NextHead {
 public:
  NextHead(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv, int64_t example)
      : problem_(problem), example_(example) {
    const int64_t bytes = problem.length * problem.head_features * kBytesOfAll;
    is_asked_ = qkv.q->order() == Order::BatchSlabs && qkv.bytes() > kLargeBatch &&
                bytes <= kLargeHead && example < problem.batch;
  }

  void add(const Tensor& x, int64_t index) {
    if (!is_asked_) return;
    const int64_t features = x.shape().features(), first = example_ * problem_.length;
    const float* data = x.data(Order::BatchSlabs) + index * problem_.head_features * kSlabWidth;
    for (int64_t slab = first / kSlabWidth; slab * kSlabWidth < first + problem_.length; ++slab) {
      ahead_.add(data + slab * features * kSlabWidth, problem_.head_features * kSlabWidth);
    }
  }
  // What a kernel prefetches during this number of products of queries × keys.
  AskedAhead* over(int64_t products) {
    if (!is_asked_) return nullptr;
    const int64_t pairs = problem_.length * problem_.length / (problem_.causal ? 2 : 1);
    ahead_.spread_over(std::max<int64_t>(1, pairs * problem_.head_features * products));
    return &ahead_;
  }

 private:
  // A batch of this size has left the second-level cache when it is used in a training step, and
  // eight arrays of this size fill a part of that cache.
  static constexpr int64_t kLargeBatch = 1 << 19, kLargeHead = 1 << 19, kBytesOfAll = 8 * 4;

  const AttentionProblem& problem_;
  int64_t example_;
  bool is_asked_ = false;
  AskedAhead ahead_;
};

}  // namespace

AttentionHead head_of(const AttentionProblem& problem, int64_t example, int64_t query_head) {
  const int64_t row =
      ((problem.first_example + example) * problem.heads + query_head) * problem.length;
  return {.length = problem.length,
          .features = problem.head_features,
          .causal = problem.causal,
          .scale = problem.scale,
          .key_mask =
              problem.key_mask == nullptr ? nullptr : problem.key_mask + example * problem.length,
          .dropout = problem.dropout,
          .rng = &problem.rng,
          .first_row = static_cast<uint64_t>(row)};
}

void attention(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv, Tensor& y,
               float* lse) {
  if (use_reference_kernels()) return attention_plainly(problem, qkv, y, lse);
  const AttentionForwardKernel kernel = attention_forward_kernel();
  parallel_blocks(problem.batch * problem.heads, [&](int64_t task) {
    const int64_t example = task / problem.heads, h = task % problem.heads;
    const int64_t kv = h / problem.group();
    NextHead next(problem, qkv, (task + 1) / problem.heads);
    const int64_t next_h = (task + 1) % problem.heads, next_kv = next_h / problem.group();
    next.add(*qkv.q, next_h);
    next.add(*qkv.k, qkv.first_key + next_kv);
    next.add(*qkv.v, qkv.first_value + next_kv);
    next.add(y, next_h);
    TaskLanes lanes(problem, qkv.q->order(), example, 4);
    const AttentionForward arrays{.q = lanes.read(*qkv.q, h),
                                  .k = lanes.read(*qkv.k, qkv.first_key + kv),
                                  .v = lanes.read(*qkv.v, qkv.first_value + kv),
                                  .y = lanes.result(y, h),
                                  .lse = lse + task * problem.length,
                                  .ahead = next.over(2)};
    kernel(head_of(problem, example, h), arrays);
    lanes.write(arrays.y, y, h);
  });
}

void attention_gradient(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv,
                        const Tensor& y, const float* lse, const Tensor& dy,
                        const QkvTensors<Tensor>& dqkv) {
  if (use_reference_kernels()) {
    return attention_gradient_plainly(problem, qkv, y, lse, dy, dqkv);
  }
  const AttentionBackwardKernel kernel = attention_backward_kernel();
  parallel_blocks(problem.batch * problem.kv_heads, [&](int64_t task) {
    const int64_t example = task / problem.kv_heads, kv = task % problem.kv_heads;
    NextHead next(problem, qkv, (task + 1) / problem.kv_heads);
    if (problem.group() == 1) {
      const int64_t next_h = (task + 1) % problem.heads;
      next.add(*qkv.q, next_h);
      next.add(*qkv.k, qkv.first_key + next_h);
      next.add(*qkv.v, qkv.first_value + next_h);
      next.add(y, next_h);
      next.add(dy, next_h);
      next.add(*dqkv.q, next_h);
      next.add(*dqkv.k, dqkv.first_key + next_h);
      next.add(*dqkv.v, dqkv.first_value + next_h);
    }
    TaskLanes lanes(problem, qkv.q->order(), example, 8);
    AttentionBackward arrays{.k = lanes.read(*qkv.k, qkv.first_key + kv),
                             .v = lanes.read(*qkv.v, qkv.first_value + kv),
                             .dk = lanes.result(*dqkv.k, dqkv.first_key + kv),
                             .dv = lanes.result(*dqkv.v, dqkv.first_value + kv),
                             .transpose = transposition(),
                             .ahead = next.over(5)};
    float* const mark = lanes.mark();
    for (int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
      lanes.return_to(mark);
      arrays.q = lanes.read(*qkv.q, h);
      arrays.y = lanes.read(y, h);
      arrays.dy = lanes.read(dy, h);
      arrays.dq = lanes.result(*dqkv.q, h);
      arrays.lse = lse + (example * problem.heads + h) * problem.length;
      kernel(head_of(problem, example, h), arrays);
      arrays.adds = true;
      lanes.write(arrays.dq, *dqkv.q, h);
    }
    lanes.write(arrays.dk, *dqkv.k, dqkv.first_key + kv);
    lanes.write(arrays.dv, *dqkv.v, dqkv.first_value + kv);
  });
}

}  // namespace lacuna
