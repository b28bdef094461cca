// What the MLP benchmark compares: implementations of the block's forward and backward pass.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/layouts/layout.h"
#include "mlp/workload.h"

namespace lacuna::bench {

/// The block's parameters, or their gradients, as the reference sees them; biases may be undefined.
struct MlpWeights {
  Tensor up;         ///< [hidden, features]
  Tensor up_bias;    ///< [hidden]
  Tensor down;       ///< [features, hidden]
  Tensor down_bias;  ///< [features]
};

/// One implementation with its weights.
class MlpContender {
 public:
  virtual ~MlpContender() = default;
  /// The weights change and their gradients are dropped, as between two steps.
  virtual void change_weights() {}
  virtual void forward(const Tensor& x) = 0;
  /// The inputs' gradient and those of both weights. *Requires* a forward pass of its own.
  virtual void backward(const Tensor& dy) = 0;

  // Results of the last pass, row-major.
  virtual Tensor y() const = 0;
  virtual Tensor dx() const = 0;
  /// Zero outside the pattern.
  virtual MlpWeights weights() const = 0;
  /// Of the weights; only positions where these are not zero are compared.
  virtual MlpWeights gradients() const = 0;
};

using MlpContenderPtr = std::unique_ptr<MlpContender>;

/// The dense opponent (common/dense_opponent.h) for the six products, with lacuna's GELU between.
/// It adds no biases, and allocates nothing once it has run.
MlpContenderPtr make_mlp_opponent(const MlpSize& size);
/// A model of lacuna's layers with biases, run by its engine. Both weights are in this layout, half
/// of them being nonzeros where it is sparse. Input, output and both gradients are row-major.
MlpContenderPtr make_mlp_model(const MlpSize& size, const Layout& layout);

/// Runs a contender, and compares a sample of its results with sums in double precision.
/// *Errors:* Error that names the contender when one is off by more than float32 rounding.
void check(const std::string& name, MlpContender& contender, const MlpOperands& operands);

}  // namespace lacuna::bench
