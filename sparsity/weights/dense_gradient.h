// DenseGradient: a parameter's gradient at every position, for an algorithm that grows by it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/param/gradient_collector.h"
#include "lacuna/framework/param/gradient_tap.h"
#include "lacuna/sparsity/masks/scores.h"

namespace lacuna {

/// The gradients since the last `zero_grad`, added up, in the parameter's shape. For a compressed
/// weight of a linear layer, the factors of their products are kept, one pair per micro-batch,
/// which the backward pass has in memory anyway: rows of the sum Σ dYᵀX are computed on request, so
/// accumulation over micro-batches is exact by construction. *Memory:* the factors; numel floats
/// for a parameter whose layout stores every position, and for the compressed weight of a
/// convolution, whose whole gradient is computed.
class DenseGradient final : public GradientTap {
 public:
  /// `collector`: that of the parameter if its gradients arrive by shards (core/shards.h); they are
  /// then summed in the shards' tree, over all processes, on request, which all processes must
  /// make.
  explicit DenseGradient(GradientRoute route,
                         std::shared_ptr<GradientCollector> collector = nullptr)
      : GradientTap(route), collector_(std::move(collector)) {}

  void observe(const Tensor& gradient) override;
  void observe_product(const Tensor& dy, const Tensor& x) override;
  void reset() override;

  /// False before the first backward.
  bool is_known() const { return sum_.defined() || !products_.empty() || !batches_.empty(); }
  /// Some rows, one after the other. *Cost:* their part of the products.
  void rows(std::span<const int64_t> rows, std::span<float> into);
  /// The gradient by rows, of which several processes may have parts. *Lifetime:* this outlives it.
  /// *Cost:* for rows, their part of the products; with several processes, for the rows of all.
  Scores scores();
  /// The whole gradient. *Requires* is_known(). *Cost:* numel floats, and the products.
  const Tensor& sum();
  /// The whole gradient, for changes; the stored gradients are dropped.
  Tensor take_sum();

 private:
  struct Product {
    Tensor dy, x;  // x row-major
    int64_t shard = -1;
  };
  // The gradients of one batch's shards.
  struct Batch {
    int64_t number = 0;
    bool is_shared = false;
    std::vector<TensorSum> sums = {};     // a shard's n-th gradient in the n-th: one for each use
    std::map<int64_t, size_t> uses = {};  // number of uses, by shard
    std::vector<Product> products = {};
  };

  static TensorSum rows_of_sum(const TensorSum& sum, std::span<const int64_t> rows);
  static TensorSum rows_of_products(const Batch& batch, std::span<const int64_t> rows);
  void add_scattered(const Batch& batch, std::vector<TensorSum> by_process, std::span<float> into,
                     bool is_first) const;
  Batch& batch_of_shards();
  bool comes_by_shards() const;
  void own_rows(std::span<const std::vector<int64_t>> rows, std::span<float> into);
  void add_rows(const Batch& batch, std::span<const int64_t> rows, std::span<float> into) const;
  void join_sums();

  std::shared_ptr<GradientCollector> collector_;
  Tensor sum_;
  std::vector<Product> products_;
  std::vector<Batch> batches_;
};

}  // namespace lacuna
