// What the linear benchmark compares: implementations of a linear layer's three products.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// One shape and sparsity, with fresh random operands.
struct LinearWorkload {
  int64_t batch = 128, in = 1024, out = 1024;
  double sparsity = 0.0;
  Tensor x = {};                   ///< [batch, in]
  Tensor dy = {};                  ///< [batch, out]
  Tensor weight = {};              ///< [out, in], zero outside the mask
  Tensor bias = {};                ///< [out]
  std::vector<uint8_t> mask = {};  ///< [out · in]

  static LinearWorkload random(int64_t batch, int64_t in, int64_t out, double sparsity);
};

enum class Pass { Forward, Both };  ///< Both: forward and the two gradients

/// One implementation, ready to run on one workload.
class LinearContender {
 public:
  virtual ~LinearContender() = default;
  /// Y = X Wᵀ + b.
  virtual void forward() = 0;
  /// dX = dY W and dW = dYᵀ X.
  virtual void backward() = 0;
  // Results of the last run, for the check against the reference.
  virtual Tensor y() const = 0;
  virtual Tensor dx() const = 0;
  virtual Tensor dw() const = 0;  ///< [out, in]; only positions in the mask are compared
};

/// Raw `dnnl_sgemm` with oneDNN's own threading: the dense opponent. The bias is not added. Null
/// where lacuna was built without oneDNN.
std::unique_ptr<LinearContender> make_onednn(const LinearWorkload& workload);
/// lacuna's layouts, as a linear layer runs them.
std::unique_ptr<LinearContender> make_dense(const LinearWorkload& workload);
std::unique_ptr<LinearContender> make_masked(const LinearWorkload& workload);

/// *Errors:* Error that names the contender when a result is off the double-precision reference by
/// more than float32 rounding.
void check(const std::string& name, LinearContender& contender, const LinearWorkload& workload);

}  // namespace lacuna::bench
