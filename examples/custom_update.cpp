// A sparsity algorithm of one's own that overrides `update()` alone, called after every step:
//   example_custom_update train configs/quickstart.yaml --run-dir runs/threshold
//     --set 'sparsity={algorithm: threshold}'
#include <cmath>

#include "lacuna/lacuna.h"

using namespace lacuna;

// Starts dense, and prunes for good every weight that falls below a thousandth.
class Threshold final : public SparsityAlgorithm {
 public:
  using SparsityAlgorithm::SparsityAlgorithm;
  std::string_view type() const override { return "threshold"; }

  void update(Optimizer&) override {
    count_step();
    for (const ParameterPtr& parameter : parameters()) {
      BitMask mask = parameter->pattern()->mask();
      const int64_t before = mask.count();
      const std::span<const float> values = parameter->values().storage();
      for (int64_t i = 0; i < mask.size(); ++i) {
        if (std::abs(values[static_cast<size_t>(i)]) < 1e-3f) mask.reset(i);
      }
      if (mask.count() < before) set_mask(*parameter, std::move(mask));
    }
  }
};
const bool registered = algorithm_registry().add("threshold", "prunes weights below a thousandth",
                                                 make_algorithm<Threshold>);

int main(int argc, char** argv) { return run_program(argc, argv); }
