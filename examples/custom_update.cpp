// A user-defined sparsity algorithm that overrides `update()` alone, called after every step:
//   example_custom_update train configs/quickstart.yaml --run-dir runs/threshold
//     --set 'sparsity={algorithm: threshold}'
#include <vector>

#include "lacuna/lacuna.h"

using namespace lacuna;

// Starts dense, and prunes for good every weight that falls below a thousandth.
class Threshold final : public SparsityAlgorithm {
 public:
  using SparsityAlgorithm::SparsityAlgorithm;
  std::string_view type() const override { return "threshold"; }

  void update(Optimizer&) override {
    count_step();
    for (SparseWeight& weight : weights()) {
      const MaskSet mask = weight.mask();
      const Tensor sizes = weight.magnitudes();  // one for each position of the mask, ascending
      const float* size = sizes.data();
      std::vector<int64_t> kept;
      mask.positions().for_each([&](int64_t position) {
        if (*size++ >= 1e-3f) kept.push_back(position);
      });
      if (static_cast<int64_t>(kept.size()) < mask.count()) {
        set_mask(weight, MaskSet(weight.shape(), Positions::of(weight.shape(), kept)));
      }
    }
  }
};
const bool registered = algorithm_registry().add("threshold", "prunes weights below a thousandth",
                                                 make_algorithm<Threshold>);

int main(int argc, char** argv) { return run_program(argc, argv); }
