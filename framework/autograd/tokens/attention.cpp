#include "lacuna/framework/autograd/tokens/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/ops/parts.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/attention/attention.hpp"
#include "lacuna/framework/kernels/attention/attention_step.hpp"
#include "lacuna/framework/kernels/attention/rotary.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// The orders that attention reads without a conversion.
Order attention_order(const Tensor& x) {
  return x.order() == Order::BatchSlabs ? Order::BatchSlabs : Order::RowMajor;
}

// Queries, keys and values: in one tensor, or in three that are not concatenated.
class QkvValues {
 public:
  QkvValues() = default;
  explicit QkvValues(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  // Also as the inputs of a node; three only if all are in one order that attention reads.
  static std::pair<QkvValues, std::vector<Variable>> of(const Variable& qkv, int64_t heads,
                                                        int64_t kv_heads, int64_t d) {
    const std::vector<Variable> parts = parts_of(qkv);
    const auto has = [&](size_t i, int64_t features) {
      const Tensor& x = parts[i].value();
      return x.shape().features() == features * d && x.order() == parts[0].value().order() &&
             x.order() == attention_order(x);
    };
    if (parts.size() == 3 && has(0, heads) && has(1, kv_heads) && has(2, kv_heads)) {
      return {QkvValues({parts[0].value(), parts[1].value(), parts[2].value()}), parts};
    }
    return {QkvValues({reordered(qkv.value(), attention_order(qkv.value()))}), {qkv}};
  }

  Order order() const { return tensors_.front().order(); }
  QkvTensors<const Tensor> tensors(const AttentionProblem& problem) const {
    return view<const Tensor>(problem, tensors_);
  }
  QkvTensors<Tensor> tensors(const AttentionProblem& problem) {
    return view<Tensor>(problem, tensors_);
  }
  QkvValues like() const {
    std::vector<Tensor> same;
    for (const Tensor& x : tensors_) same.push_back(Tensor::empty(x.shape(), x.order()));
    return QkvValues(std::move(same));
  }
  const std::vector<Tensor>& all() const { return tensors_; }
  std::vector<Tensor>& all() { return tensors_; }

 private:
  template <class T, class Vector>
  static QkvTensors<T> view(const AttentionProblem& problem, Vector& tensors) {
    if (tensors.size() == 1) return QkvTensors<T>::joined(problem, tensors[0]);
    return {.q = &tensors[0], .k = &tensors[1], .v = &tensors[2]};
  }

  std::vector<Tensor> tensors_;
};

int64_t key_heads(const AttentionOptions& options) {
  return options.kv_heads == 0 ? options.heads : options.kv_heads;
}

AttentionProblem problem(const Shape& qkv, const AttentionOptions& options) {
  const int64_t kv_heads = key_heads(options);
  const int64_t d = qkv.features() / (options.heads + 2 * kv_heads);
  const double scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  return {.batch = qkv[0],
          .length = qkv[1],
          .heads = options.heads,
          .kv_heads = kv_heads,
          .head_features = d,
          .causal = options.causal,
          .scale = static_cast<float>(scale),
          .key_mask = options.key_mask.defined() ? options.key_mask.values().data() : nullptr,
          .dropout = options.dropout,
          .rng = options.rng,
          .first_example = options.first_example};
}

struct AttentionNode final : Node {
  AttentionNode(AttentionOptions options_, Shape shape_, QkvValues qkv_, Tensor y_, Tensor lse_)
      : options(std::move(options_)),
        shape(std::move(shape_)),
        qkv(std::move(qkv_)),
        y(std::move(y_)),
        lse(std::move(lse_)) {}
  std::string_view name() const override { return "attention"; }
  std::vector<Tensor*> saved() override {
    std::vector<Tensor*> all{&y, &lse};
    for (Tensor& x : qkv.all()) all.push_back(&x);
    return all;
  }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, y.order());  // dy [batch, T, heads · d]
    // With the weights p = softmax(scale q kᵀ) of a row and D = Σ dy y: dp = dy vᵀ,
    // ds = scale p (dp − D), dq = ds k, dk = dsᵀ q, dv = pᵀ dy   [batch, T, (heads + 2 kv_heads) d]
    QkvValues dx = qkv.like();
    const AttentionProblem p = problem(shape, options);
    attention_gradient(p, std::as_const(qkv).tensors(p), y, lse.data(), dy, dx.tensors(p));
    return dx.all();
  }

  AttentionOptions options;
  Shape shape;  // of q, k and v concatenated
  QkvValues qkv;
  Tensor y, lse;
};

struct RotaryNode final : Node {
  RotaryNode(RotaryShape shape_, Order order_, Tensor table_)
      : shape(shape_), order(order_), table(std::move(table_)) {}
  std::string_view name() const override { return "rotary"; }
  std::vector<Tensor*> saved() override { return {&table}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, order);  // dy [batch, T, ...]
    Tensor dx = Tensor::empty(dy.shape(), order);
    rotate(shape, Rotation::Back, table, dy, dx);  // dx = dy rotated back   [batch, T, ...]
    return {dx};
  }

  RotaryShape shape;
  Order order;
  Tensor table;
};

void require_mask(const Shape& qkv, const IndexTensor& mask) {
  if (!mask.defined() || mask.shape() == Shape{qkv[0], qkv[1]}) return;
  throw ShapeError(fmt::format("attention: qkv {} needs a key mask {}, found {}", qkv.to_string(),
                               Shape{qkv[0], qkv[1]}.to_string(), mask.shape().to_string()));
}

void require_sequence(std::string_view op, const Shape& qkv) {
  if (qkv.rank() == 3) return;
  throw ShapeError(fmt::format("{}: needs qkv [batch, T, (heads + 2 kv_heads) d], found {}", op,
                               qkv.to_string()));
}

}  // namespace

int64_t head_features(std::string_view what, const Shape& qkv, int64_t heads, int64_t kv_heads) {
  if (heads < 1 || kv_heads < 0 || (kv_heads > 0 && heads % kv_heads != 0)) {
    throw ConfigError(
        fmt::format("{}: heads must be at least 1 and a multiple of kv_heads, found {} and {}",
                    what, heads, kv_heads));
  }
  const int64_t parts = heads + 2 * (kv_heads == 0 ? heads : kv_heads);
  if (qkv.rank() < 1 || qkv.features() == 0 || qkv.features() % parts != 0) {
    throw ShapeError(fmt::format(
        "{}: {} heads of queries and {} of keys and values need features that are a multiple of "
        "{}, found shape {} (a preset's n_head or num_attention_heads sets the number of heads)",
        what, heads, (parts - heads) / 2, parts, qkv.to_string()));
  }
  return qkv.features() / parts;
}

Variable attention(const Variable& qkv, const AttentionOptions& options) {
  const Shape& shape = qkv.shape();
  require_sequence("attention", shape);
  const int64_t d = head_features("attention", shape, options.heads, options.kv_heads);
  require_mask(shape, options.key_mask);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    throw ConfigError(
        fmt::format("attention: dropout must be in [0, 1), found {:f}", options.dropout));
  }
  auto [x, inputs] = QkvValues::of(qkv, options.heads, key_heads(options), d);
  Tensor y = Tensor::empty(shape.with_features(options.heads * d), x.order());
  Tensor lse = Tensor::empty({shape[0], options.heads, shape[1]});
  const AttentionProblem p = problem(shape, options);
  attention(p, std::as_const(x).tensors(p), y, lse.mutable_data());
  return record<AttentionNode>(y, std::move(inputs), options, shape, x, y, lse);
}

Tensor attention_to_seen(const Tensor& qkv, std::span<const float> keys,
                         std::span<const float> values, const AttentionOptions& options) {
  const Shape& shape = qkv.shape();
  require_sequence("attention", shape);
  const int64_t d = head_features("attention", shape, options.heads, options.kv_heads);
  const AttentionProblem p = problem(shape, options);
  const int64_t tokens = shape[1], row = p.kv_heads * d;
  const auto count = static_cast<int64_t>(keys.size());
  if (shape[0] != 1 || count % row != 0 || count / row < tokens || keys.size() != values.size()) {
    throw ShapeError(fmt::format(
        "attention: qkv {} of one text needs as many keys as values, {} per token, found {} and {}",
        shape.to_string(), row, keys.size(), values.size()));
  }
  Tensor y = Tensor::empty(Shape{1, tokens, p.heads * d});
  for (int64_t t = 0; t < tokens; ++t) {
    attend({.heads = p.heads,
            .kv_heads = p.kv_heads,
            .head_features = d,
            .scale = p.scale,
            .seen = count / row - tokens + t + 1,
            .queries = qkv.data() + t * shape.features(),
            .keys = keys.data(),
            .values = values.data()},
           y.mutable_data() + t * p.heads * d);
  }
  return y;
}

namespace {

// The first `heads` parts of x, rotated; the table is that of x's order.
Variable rotated(const Variable& x, const RotaryShape& turned, const Tensor& table) {
  const Tensor value = reordered(x.value(), attention_order(x.value()));
  Tensor y = Tensor::empty(x.shape(), value.order());
  rotate(turned, Rotation::Forward, table, value, y);
  return record<RotaryNode>(std::move(y), {x}, turned, value.order(), table);
}

// The inputs of a deferred concatenation [q | k | v], if q and k are in one order.
std::vector<Variable> parts_to_turn(const Variable& qkv, int64_t heads, int64_t kv_heads,
                                    int64_t d) {
  std::vector<Variable> parts = parts_of(qkv);
  if (parts.size() != 3 || parts[0].shape().features() != heads * d ||
      parts[1].shape().features() != kv_heads * d ||
      attention_order(parts[0].value()) != attention_order(parts[1].value())) {
    parts.clear();
  }
  return parts;
}

}  // namespace

Variable rotary(const Variable& qkv, const RotaryOptions& options) {
  const Shape& shape = qkv.shape();
  require_sequence("rotary", shape);
  const int64_t d = head_features("rotary", shape, options.heads, options.kv_heads);
  if (d % 2 != 0) {
    throw ShapeError(fmt::format(
        "rotary: needs an even number of features per head, found {} of {}", d, shape.to_string()));
  }
  if (!(options.base > 0.0 && std::isfinite(options.base))) {
    throw ConfigError(fmt::format("rotary: base must be above 0, found {}", options.base));
  }
  const int64_t kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  std::vector<Variable> parts = parts_to_turn(qkv, options.heads, kv_heads, d);
  const Tensor& first = parts.empty() ? qkv.value() : parts[0].value();
  const Tensor table =
      rotary_table(shape[1], d, options.base, attention_order(first), options.first_position);
  RotaryShape turned{.heads = options.heads + kv_heads, .head_features = d, .length = shape[1]};
  if (parts.empty()) return rotated(qkv, turned, table);
  turned.heads = options.heads;
  parts[0] = rotated(parts[0], turned, table);
  turned.heads = kv_heads;
  parts[1] = rotated(parts[1], turned, table);
  return concatenate(parts, -1);
}

}  // namespace lacuna
