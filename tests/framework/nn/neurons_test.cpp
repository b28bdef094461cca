#include "lacuna/framework/nn/neurons.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/residual.h"
#include "throws.h"

namespace lacuna::neurons_test {
namespace {

PatternPtr pattern(const Shape& shape, const std::vector<int64_t>& flat,
                   const Layout& layout = csr_layout()) {
  return Pattern::make(layout, shape, Positions::of(shape, flat));
}

TEST(CountNeurons, CountsThoseThatAreReachedAndReach) {
  // Inputs 0, 1, 2; hidden 0 reads input 0, hidden 1 reads nothing, hidden 2 reads input 1 and
  // feeds nothing; output 0 reads hidden 0 and 1, output 1 reads hidden 1.
  for (const Layout* layout : {&csr_layout(), &masked_layout()}) {
    const std::vector<PatternPtr> chain = {pattern(Shape{3, 3}, {0, 7}, *layout),
                                           pattern(Shape{2, 3}, {0, 1, 4}, *layout)};
    EXPECT_EQ(count_neurons(chain), (NeuronCounts{.neurons = 8, .on_path = 3}));
  }
}

TEST(CountNeurons, DenseWeightsConnectEverything) {
  const std::vector<PatternPtr> dense = {Pattern::dense(Shape{3, 4}), Pattern::dense(Shape{2, 3})};
  EXPECT_EQ(count_neurons(dense), (NeuronCounts{.neurons = 9, .on_path = 9}));
  // A dense weight behind one that holds nothing is reached by nothing.
  const std::vector<PatternPtr> cut = {pattern(Shape{3, 4}, {}), Pattern::dense(Shape{2, 3})};
  EXPECT_EQ(count_neurons(cut), (NeuronCounts{.neurons = 9, .on_path = 0}));
}

TEST(CountNeurons, OfNoWeightsThereAreNone) {
  EXPECT_EQ(count_neurons(std::vector<PatternPtr>{}), NeuronCounts{});
}

TEST(CountNeurons, RefusesWeightsThatDoNotFit) {
  const std::vector<PatternPtr> chain = {Pattern::dense(Shape{3, 4}), Pattern::dense(Shape{2, 5})};
  expect_throws<ShapeError>([&] { count_neurons(chain); },
                            "a weight of shape [2, 5] cannot follow one of 3 outputs");
}

TEST(CountNeurons, OfAModelThatIsNoChainTheyAreUnknown) {
  Sequential chain, joined;
  chain.add<Linear>("fc", {.in_features = 4, .out_features = 4});
  auto& inner = joined.add<Sequential>("inner");
  inner.add<Residual>("residual").add<Linear>("fc", {.in_features = 4, .out_features = 4});
  EXPECT_EQ(count_neurons(chain), (NeuronCounts{.neurons = 8, .on_path = 8}));
  EXPECT_EQ(count_neurons(joined), std::nullopt);
}

/// A model's only weight, used as it is told.
class OneWeight final : public Module {
 public:
  OneWeight(const Shape& shape, WeightUse use) {
    register_parameter("weight", std::make_shared<Parameter>(shape, Initializer::uniform(1.0)))
        ->use = use;
  }
  std::string_view type() const override { return "one_weight"; }

 protected:
  Variable forward(const Variable& x) override { return x; }
};

TEST(CountNeurons, OfModelsWithConvolutionsThereIsNoChain) {
  Sequential model;
  model.add("fc", std::make_unique<OneWeight>(Shape{3, 4}, WeightUse::Linear));
  EXPECT_EQ(count_neurons(model), (NeuronCounts{.neurons = 7, .on_path = 7}));
  model.add("mine", std::make_unique<OneWeight>(Shape{5, 5}, WeightUse::Other));
  EXPECT_EQ(count_neurons(model), (NeuronCounts{.neurons = 7, .on_path = 7}));
  model.add("conv", std::make_unique<OneWeight>(Shape{2, 3, 3, 3}, WeightUse::Convolution));
  EXPECT_EQ(count_neurons(model), std::nullopt);
}

}  // namespace
}  // namespace lacuna::neurons_test
