// What the model benchmark compares: a network in training, its convolutions in one layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/algorithm.h"
#include "model/network.h"

namespace lacuna::bench {

/// How the convolutions but the first are stored, and how sparse each of them is.
struct Storage {
  std::string layout = "dense";  ///< dense, masked, csr, auto
  double sparsity = 0.0;         ///< none where dense
};

/// A network that trains by SGD with momentum on a batch of noise.
class ImageTrainee {
 public:
  /// `examples`: those of the batch. Layouts and algorithms are chosen for the network's own.
  ImageTrainee(const Network& network, int64_t examples, const Storage& storage);

  /// One whole step: forward, loss, backward, update, masking. Returns the loss.
  float step();

  /// Medians over the steps but the first, in ms: "forward" with the loss, "optimizer", and of the
  /// backward pass the nodes of each name together, "backward conv2d".
  std::map<std::string, double> ms_by_kind() const;
  /// "csr", or "csr in 15 of 18" where others are masked.
  std::string stored() const;
  const Module& model() const { return *model_; }

 private:
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<Sgd> optimizer_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;
  Tensor images_;
  IndexTensor labels_;
  std::vector<std::map<std::string, double>> seconds_;  // of each step
};

}  // namespace lacuna::bench
