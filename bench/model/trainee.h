// What the model benchmark compares: a network in training or inference, its convolutions in one
// layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/optimizers/sgd.h"
#include "lacuna/sparsity/algorithm.h"
#include "model/network.h"
#include "model/pass_profile.h"

namespace lacuna::bench {

/// How the convolutions but the first are stored, and how sparse each of them is.
struct Storage {
  std::string layout = "dense";  ///< dense, masked, csr, auto
  double sparsity = 0.0;         ///< none where dense
};

/// A network on a batch of noise.
class ImageNetwork {
 public:
  virtual ~ImageNetwork() = default;

  /// What is timed.
  virtual void run() = 0;
  /// A run that counts for nothing: after another network's, whose blocks of memory have other
  /// sizes, it leaves its own, as each step of a training leaves them to the next.
  void warm_up() {
    run();
    profile_.drop_last();
  }
  /// One number that shows whether two networks compute the same.
  virtual float result() = 0;
  /// Where the time of runs goes.
  const PassProfile& profile() const { return profile_; }
  /// Multiplications and additions of a run, of the nonzeros: of a training step, or of inference.
  double operations(bool is_training) const;
  /// "csr", or "csr in 15 of 18" where others are masked.
  std::string stored() const;
  const Module& model() const { return *model_; }

 protected:
  /// `examples`: those of the batch. Layouts and algorithms are chosen for the network's own.
  ImageNetwork(const Network& network, int64_t examples, const Storage& storage);
  void require_stored(const Storage& storage) const;

  std::unique_ptr<Sequential> model_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;  // null where dense
  std::vector<ParameterPtr> sparse_weights_;
  Tensor images_;
  PassProfile profile_;
};

/// Trains by SGD with momentum. In addition to PassProfile's kinds of work, there are "forward" as
/// a whole, with the loss, and "optimizer".
class ImageTrainee final : public ImageNetwork {
 public:
  ImageTrainee(const Network& network, int64_t examples, const Storage& storage);
  ~ImageTrainee() override { algorithm_.reset(); }  // which hooks the optimizer

  /// One whole step: forward, loss, backward, update, masking.
  void run() override { result(); }
  /// The loss of such a step.
  float result() override;

 private:
  std::unique_ptr<Sgd> optimizer_;
  IndexTensor labels_;
};

/// Evaluates, with batch normalizations folded into the weights. Next to PassProfile's kinds of
/// work there is "forward" as a whole.
class ImagePredictor final : public ImageNetwork {
 public:
  ImagePredictor(const Network& network, int64_t examples, const Storage& storage);

  void run() override;
  /// The magnitudes of the outputs, summed.
  float result() override;

 private:
  Tensor outputs_;
};

}  // namespace lacuna::bench
