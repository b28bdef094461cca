#include "lacuna/framework/kernels/attention/attention_plain.hpp"

#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/attention/attention_reference.hpp"

namespace lacuna {
namespace {

// Rows × columns of one head in x.
class PlainHead {
 public:
  PlainHead(const AttentionProblem& problem, const Shape& shape, Order order, int64_t example,
            int64_t index)
      : rows_(problem.length),
        columns_(problem.head_features),
        features_(shape.features()),
        first_row_(example * problem.length),
        first_column_(index * problem.head_features),
        is_row_major_(order == Order::RowMajor) {}

  std::vector<float> read(const Tensor& x) const {
    std::vector<float> rows(static_cast<size_t>(rows_ * columns_));
    const float* from = x.data(x.order());
    for_each([&](size_t i, int64_t at) { rows[i] = from[at]; });
    return rows;
  }
  void write(const std::vector<float>& rows, Tensor& x) const {
    float* to = x.mutable_data(x.order());
    for_each([&](size_t i, int64_t at) { to[at] = rows[i]; });
  }

 private:
  template <class Body>
  void for_each(const Body& body) const {
    size_t i = 0;
    for (int64_t r = first_row_; r < first_row_ + rows_; ++r) {
      for (int64_t c = first_column_; c < first_column_ + columns_; ++c) {
        body(i++, is_row_major_ ? r * features_ + c
                                : (r / kSlabWidth * features_ + c) * kSlabWidth + r % kSlabWidth);
      }
    }
  }

  int64_t rows_, columns_, features_, first_row_, first_column_;
  bool is_row_major_;
};

std::vector<float> read(const AttentionProblem& problem, const Tensor& x, int64_t example,
                        int64_t index) {
  return PlainHead(problem, x.shape(), x.order(), example, index).read(x);
}
void write(const AttentionProblem& problem, const std::vector<float>& rows, Tensor& x,
           int64_t example, int64_t index) {
  PlainHead(problem, x.shape(), x.order(), example, index).write(rows, x);
}

}  // namespace

void attention_plainly(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv,
                       Tensor& y, float* lse) {
  parallel_blocks(problem.batch * problem.heads, [&](int64_t task) {
    const int64_t example = task / problem.heads, h = task % problem.heads;
    const int64_t kv = h / problem.group();
    const auto q = read(problem, *qkv.q, example, h),
               k = read(problem, *qkv.k, example, qkv.first_key + kv),
               v = read(problem, *qkv.v, example, qkv.first_value + kv);
    std::vector<float> rows(q.size());
    reference::attention_head(head_of(problem, example, h), q.data(), k.data(), v.data(),
                              rows.data(), lse + task * problem.length);
    write(problem, rows, y, example, h);
  });
}

void attention_gradient_plainly(const AttentionProblem& problem,
                                const QkvTensors<const Tensor>& qkv, const Tensor& y,
                                const float* lse, const Tensor& dy,
                                const QkvTensors<Tensor>& dqkv) {
  parallel_blocks(problem.batch * problem.kv_heads, [&](int64_t task) {
    const int64_t example = task / problem.kv_heads, kv = task % problem.kv_heads;
    const auto k = read(problem, *qkv.k, example, qkv.first_key + kv),
               v = read(problem, *qkv.v, example, qkv.first_value + kv);
    std::vector<float> dq(k.size()), dk(k.size(), 0.0f), dv(k.size(), 0.0f);
    for (int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
      const auto q = read(problem, *qkv.q, example, h), of_y = read(problem, y, example, h),
                 of_dy = read(problem, dy, example, h);
      reference::attention_head_gradient(head_of(problem, example, h), q.data(), k.data(), v.data(),
                                         of_y.data(),
                                         lse + (example * problem.heads + h) * problem.length,
                                         of_dy.data(), dq.data(), dk.data(), dv.data());
      write(problem, dq, *dqkv.q, example, h);
    }
    write(problem, dk, *dqkv.k, example, dqkv.first_key + kv);
    write(problem, dv, *dqkv.v, example, dqkv.first_value + kv);
  });
}

}  // namespace lacuna
