// Attention as tasks: a query head of an example each in the forward pass; in the backward pass a
// key head with all its query heads, whose gradients of keys and values are added in their order.
// A task copies its head's rows out of the activations into arrays of its own, padded so that
// kernels run over whole vectors.
#include "lacuna/framework/kernels/attention/attention.hpp"

#include <limits>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/attention/attention_head.hpp"
#include "lacuna/framework/kernels/attention/head_rows.hpp"

namespace lacuna {
namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// A head's arrays in a task.
class HeadArrays {
 public:
  HeadArrays(const AttentionProblem& problem, int64_t example)
      : problem_(problem), example_(example), bias_(0) {
    head_ = {.length = problem.length,
             .features = problem.head_features,
             .rows = round_up(problem.length, 16),
             .stride = round_up(problem.head_features, 16),
             .causal = problem.causal,
             .scale = problem.scale,
             .dropout = problem.dropout,
             .rng = &problem.rng};
    bias_.assign(static_cast<size_t>(head_.rows), -std::numeric_limits<float>::infinity());
    for (int64_t key = 0; key < problem.length; ++key) {
      const bool is_seen =
          problem.key_mask == nullptr || problem.key_mask[example * problem.length + key] != 0;
      if (is_seen) bias_[static_cast<size_t>(key)] = 0.0f;
    }
    head_.bias = bias_.data();
  }
  HeadArrays(const HeadArrays&) = delete;
  HeadArrays& operator=(const HeadArrays&) = delete;

  const AttentionHead& head(int64_t query_head) {
    head_.first_row = static_cast<uint64_t>(
        ((problem_.first_example + example_) * problem_.heads + query_head) * head_.length);
    return head_;
  }
  Array<float> zeros() const { return Array<float>(static_cast<size_t>(head_.size()), 0.0f); }

  // The head that is number `index` of those side by side in x.
  Array<float> read(const Tensor& x, int64_t index) const {
    Array<float> rows = zeros();
    read_head(x, place(index), head_.stride, rows.data());
    return rows;
  }
  void write(const Array<float>& rows, Tensor& x, int64_t index) const {
    write_head(rows.data(), head_.stride, place(index), x);
  }
  Array<float> transposed(const Array<float>& rows) const {
    Array<float> columns(static_cast<size_t>(head_.features * head_.rows));
    transpose_head(rows.data(), head_.stride, head_.rows, head_.features, columns.data());
    return columns;
  }

 private:
  HeadPlace place(int64_t index) const {
    return {.first_row = example_ * head_.length,
            .rows = head_.length,
            .first_column = index * head_.features,
            .columns = head_.features};
  }

  const AttentionProblem& problem_;
  int64_t example_;
  AttentionHead head_;
  Array<float> bias_;
};

}  // namespace

void attention(const AttentionProblem& problem, const Tensor& qkv, Tensor& y, float* lse) {
  const AttentionForwardKernel kernel = attention_forward_kernel();
  parallel_blocks(problem.batch * problem.heads, [&](int64_t task) {
    const int64_t example = task / problem.heads, h = task % problem.heads;
    const int64_t key_head = problem.heads + h / problem.group();
    HeadArrays arrays(problem, example);
    const Array<float> q = arrays.read(qkv, h), k = arrays.read(qkv, key_head),
                       v = arrays.read(qkv, key_head + problem.kv_heads);
    const Array<float> k_transposed = arrays.transposed(k);
    Array<float> rows = arrays.zeros();
    kernel(arrays.head(h), {.q = q.data(),
                            .k = k.data(),
                            .k_transposed = k_transposed.data(),
                            .v = v.data(),
                            .y = rows.data(),
                            .lse = lse + task * problem.length});
    arrays.write(rows, y, h);
  });
}

void attention_gradient(const AttentionProblem& problem, const Tensor& qkv, const Tensor& y,
                        const float* lse, const Tensor& dy, Tensor& dqkv) {
  const AttentionBackwardKernel kernel = attention_backward_kernel();
  parallel_blocks(problem.batch * problem.kv_heads, [&](int64_t task) {
    const int64_t example = task / problem.kv_heads, kv = task % problem.kv_heads;
    const int64_t key_head = problem.heads + kv, value_head = key_head + problem.kv_heads;
    HeadArrays arrays(problem, example);
    const Array<float> k = arrays.read(qkv, key_head), v = arrays.read(qkv, value_head);
    const Array<float> k_transposed = arrays.transposed(k), v_transposed = arrays.transposed(v);
    Array<float> dq = arrays.zeros(), dk = arrays.zeros(), dv = arrays.zeros();
    for (int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
      const Array<float> q = arrays.read(qkv, h), of_y = arrays.read(y, h),
                         of_dy = arrays.read(dy, h);
      kernel(arrays.head(h), {.q = q.data(),
                              .k = k.data(),
                              .k_transposed = k_transposed.data(),
                              .v = v.data(),
                              .v_transposed = v_transposed.data(),
                              .y = of_y.data(),
                              .dy = of_dy.data(),
                              .lse = lse + (example * problem.heads + h) * problem.length,
                              .dq = dq.data(),
                              .dk = dk.data(),
                              .dv = dv.data()});
      arrays.write(dq, dqkv, h);
    }
    arrays.write(dk, dqkv, key_head);
    arrays.write(dv, dqkv, value_head);
  });
}

}  // namespace lacuna
