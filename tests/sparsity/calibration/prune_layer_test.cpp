// prune_layer: what is kept and told of a convolution in groups is of all of them together.
#include "lacuna/sparsity/calibration/prune_layer.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace lacuna::prune_layer_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Where a group gives zeros before it is pruned, and other values after, that counts, too.
TEST(PruneLayer, ErrorOfGroupsIsThatOfAllOutputs) {
  const Tensor weight = Tensor::from({2, 2, 1, 1}, std::vector<float>{1, -1, 1, 1});
  const InputGram equal_inputs = InputGram::of_matrix(2, std::vector<double>{1, 1, 1, 1}, 10);
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Magnitude);
  options.granularity = OneShotGranularity::Row;
  const PrunedWeight pruned =
      prune_layer("conv1", weight, {equal_inputs, equal_inputs},
                  MaskSelector({}, {}, weight.shape()), 2, MaskSet::all(weight.shape()), options);
  EXPECT_EQ(pruned.weight.to_vector(), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_DOUBLE_EQ(pruned.relative_error, (1.0 + 1.0) / (0.0 + 4.0));
}

// As without examples, where there is one Gram matrix for all.
TEST(PruneLayer, MagnitudeComparesTheWeightsOfAllGroups) {
  const Tensor weight = Tensor::from({4, 2, 1, 1}, std::vector<float>{1, 9, 3, -4, 8, 2, -7, 6});
  const InputGram inputs = InputGram::of_matrix(2, std::vector<double>{2, 1, 1, 2}, 10);
  for (const int64_t keep : {1, 3, 4, 6}) {
    const auto kept = [&](const std::vector<InputGram>& grams) {
      return prune_layer("conv1", weight, grams, MaskSelector({}, {}, weight.shape()), keep,
                         MaskSet::all(weight.shape()),
                         OneShotOptions::defaults(OneShotMethod::Magnitude))
          .weight.to_vector();
    };
    EXPECT_EQ(kept({inputs, inputs}), kept({inputs})) << keep;
    EXPECT_EQ(kept({inputs, inputs, inputs, inputs}), kept({inputs})) << keep;
  }
}

// Each group has its own: dead inputs of one say nothing of another.
TEST(PruneLayer, TellsOfAGroupWithFewerRowsThanInputs) {
  const Tensor weight = Tensor::from({2, 2, 1, 1}, std::vector<float>{1, 2, 3, 4});
  const InputGram whole = InputGram::of_matrix(2, std::vector<double>{2, 1, 1, 2}, 1);
  const InputGram half_dead = InputGram::of_matrix(2, std::vector<double>{2, 0, 0, 0}, 1);
  const PrunedWeight pruned =
      prune_layer("conv1", weight, {whole, half_dead}, MaskSelector({}, {}, weight.shape()), 2,
                  MaskSet::all(weight.shape()), OneShotOptions::defaults(OneShotMethod::SparseGpt));
  EXPECT_THAT(pruned.messages, Contains(HasSubstr("1 of 4 inputs is zero")));
  EXPECT_THAT(pruned.messages, Contains(HasSubstr("1 row for 2 inputs")));
}

// Where as much is kept as is there, nothing hangs on the inputs.
TEST(PruneLayer, TellsNothingOfAWeightThatStaysAsItIs) {
  const Tensor weight = Tensor::from({2, 2}, std::vector<float>{1, 0, 0, 4});
  const InputGram half_dead = InputGram::of_matrix(2, std::vector<double>{2, 0, 0, 0}, 1);
  BitMask present = BitMask::zeros(4);
  present.set(0);
  present.set(3);
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  options.least_squares = true;
  const PrunedWeight pruned =
      prune_layer("fc1", weight, {half_dead}, MaskSelector({}, {}, weight.shape()), 2,
                  MaskSet(weight.shape(), present), options);
  EXPECT_EQ(pruned.weight.to_vector(), weight.to_vector());
  EXPECT_THAT(pruned.messages, testing::IsEmpty());
}

}  // namespace
}  // namespace lacuna::prune_layer_test
