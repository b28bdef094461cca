// What the linear benchmark compares: implementations of a linear layer's three products.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/layouts/pattern.h"
#include "linear/workload.h"

namespace lacuna::bench {

/// One implementation, ready to run on one workload, which must outlive it.
class LinearContender {
 public:
  virtual ~LinearContender() = default;
  /// The weights change, as between two steps: whatever is derived from them is stale.
  virtual void change_weights() {}
  /// Lets the results of the last run go, as a step's are gone when the next begins: their memory
  /// is that of the next contender's results.
  virtual void release_results() {}
  /// Selects the mask again from the weights, and takes the values there: transposable 2:4 alone.
  virtual void select_mask() {}
  /// Y = X Wᵀ + b.
  virtual void forward() = 0;
  /// dX = dY W and dW = dYᵀ X.
  virtual void backward() = 0;
  /// Adam's update of the weight, where the contender trains. It keeps zeros at zero.
  virtual void update() {}

  // Results of the last run, for the check against the reference.
  virtual Tensor y() const = 0;
  virtual Tensor dx() const = 0;
  virtual Tensor dw() const = 0;  ///< [out, in]; only positions in the mask are compared
};

using LinearContenderPtr = std::unique_ptr<LinearContender>;

/// The dense opponent (common/dense_opponent.h). It adds no bias.
LinearContenderPtr make_opponent(const LinearWorkload& workload);
/// Eigen's sparse product, as a user of that library would write a sparse layer.
LinearContenderPtr make_eigen_sparse(const LinearWorkload& workload);
/// "Eigen 3.4.0, AVX2 and FMA".
std::string eigen_version();

/// How a layout's activations and gradients lie before and after its products.
enum class Activations {
  OwnOrder,  ///< the layout's own, as within a chain of layers like it
  RowMajor,  ///< converted both ways, as by a single layer between others: x and dy, y and dx
};
/// One of lacuna's layouts, as the linear operation runs it, with bias.
LinearContenderPtr make_layout(const LinearWorkload& workload, PatternPtr pattern,
                               Activations activations = Activations::OwnOrder);

/// A dense weight and N:M activations, which are selected from the workload's in every pass.
LinearContenderPtr make_sparse_activations(const LinearWorkload& workload, int n, int m);

/// Runs a contender and compares a sample of its results with sums in double precision.
/// *Errors:* Error that names the contender when one is off by more than float32 rounding.
void check(const std::string& name, LinearContender& contender, const LinearWorkload& workload);

}  // namespace lacuna::bench
