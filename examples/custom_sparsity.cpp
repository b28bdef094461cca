// The `lacuna` program with a user-defined sparsity algorithm, which a configuration then names:
//   example_custom_sparsity train configs/quickstart.yaml --run-dir runs/descent
//     --set 'sparsity={algorithm: descent, sparsity: 0.9, update: {freq: 100, stop: 1100}}'
#include <algorithm>

#include "lacuna/lacuna.h"

using namespace lacuna;

// SET that grows by gradient sign: where the dense gradient is most negative, so that the new
// weights begin positive.
class Descent final : public Set {
 public:
  using Set::Set;
  std::string_view type() const override { return "descent"; }

 protected:
  // Called before the forward pass, so that the backward pass keeps the dense gradient.
  bool wants_dense_gradient(int64_t step) const override {
    return update_schedule().is_update(step);
  }
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override {
    Tensor scores = take_dense_gradient(weight);
    for (float& score : scores.mutable_storage()) score = std::max(-score, 0.0f);
    return weight.selector().grow_maximum(rows_of(scores), count, kept);
  }
};
const bool registered = algorithm_registry().add(
    "descent", "SET that grows where the gradient is most negative",
    AlgorithmType{make_drop_grow<Descent>, "where new weights should begin positive"});

int main(int argc, char** argv) { return run_program(argc, argv); }
