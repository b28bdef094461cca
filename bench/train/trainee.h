// What the train benchmark compares: a network with its optimizer, sparsity and data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/sparsity_case.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/optimizers/adam.h"

namespace lacuna::bench {

/// The training images: MNIST where LACUNA_DATA_DIR holds it or mnist/, else as many drawn digits.
struct TrainingData {
  std::shared_ptr<const Dataset> images;
  std::string name;
};
TrainingData load_training_data(int64_t drawn_examples);

/// An MLP that trains by Adam on batches of 128, its hidden weights sparse, its classifier dense.
class Trainee {
 public:
  /// `hidden`: the sizes of the hidden layers, each followed by dropout unless it is 0. *Errors:*
  /// those of apply_sparsity.
  Trainee(std::shared_ptr<const Dataset> data, const std::vector<int64_t>& hidden,
          const SparsityCase& sparsity, double dropout = 0.0);

  /// One whole step: the batch, forward, loss, backward, update, masking, topology. Returns the
  /// loss.
  float step();
  int64_t steps_per_epoch() const { return loader_.batches_per_epoch(); }
  /// Multiplications and additions of a step, of the nonzeros.
  double operations() const;
  std::string layouts() const { return stored_layouts(model_, sparse_); }

 private:
  Loader loader_;
  Sequential model_;
  std::vector<std::string> sparse_;  // names of the hidden weights
  std::unique_ptr<Adam> optimizer_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;
};

}  // namespace lacuna::bench
