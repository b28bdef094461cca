// The `lacuna` program with a sparsity algorithm of one's own, which a configuration then names:
//   example_custom_algorithm train configs/quickstart.yaml --run-dir runs/halving
//     --set 'sparsity={algorithm: halving, sparsity: 0.9, update: {freq: 100}}'
#include <memory>

#include "lacuna/lacuna.h"

using namespace lacuna;

// On update steps drops the smaller half of the weights, and grows to the target at random.
class Halving final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "halving"; }
  BitMask update_mask(const Parameter& parameter, const BitMask& mask, float) override {
    const std::vector<float> sizes = magnitudes(parameter.to_dense().storage());
    const BitMask half = drop_minimum(sizes, mask.count() / 2, mask, groups(parameter));
    const CounterRng rng(options().seed, parameter.name(), static_cast<uint64_t>(step()));
    return grow_random(rng, target_nnz(parameter), half, groups(parameter));
  }
};
const bool registered = algorithm_registry().add(
    "halving", "drops the smaller half, grows at random", [](auto& entry, auto seed) {
      return std::make_unique<Halving>(DynamicOptions::from_config(entry, seed));
    });

int main(int argc, char** argv) { return run_program(argc, argv); }
