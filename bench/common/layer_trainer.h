// One square sparse layer in training: Linear, Adam and a sparsity algorithm, on random batches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/sparsity_case.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/optimizers/adam.h"

namespace lacuna::bench {

struct LayerOptions {
  int64_t side = 1024;  ///< of the weight
  int64_t batch = 128;
  int batches = 3;  ///< different ones, in rotation
  SparsityCase sparsity = {};
};

/// As a layer within a chain of layers like it trains: inputs and output gradients come in the
/// layout's storage order, and the inputs' gradient is wanted.
class LayerTrainer {
 public:
  explicit LayerTrainer(const LayerOptions& options);

  /// Forward and backward of the next of a few batches.
  void forward_backward();
  /// The optimizer's step, with masking, and the topology update where it is time for one.
  void update();

  Parameter& weight() { return *model_.parameter("layer.weight"); }
  /// Bytes of the batches' inputs and output gradients.
  int64_t batch_bytes() const;
  const SparsityAlgorithm& algorithm() const { return *algorithm_; }

 private:
  Sequential model_;
  std::unique_ptr<Adam> optimizer_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;
  std::vector<Tensor> x_, dy_;  // rotating batches
  size_t next_ = 0;
};

}  // namespace lacuna::bench
