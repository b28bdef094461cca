#include "lacuna/framework/train/run_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna::run_model_test {
namespace {

// Notes what it finds.
class Witness final : public Module {
 public:
  std::string_view type() const override { return "witness"; }

  IndexTensor ids, mask;

 protected:
  Variable forward(const Variable& input) override {
    if (const IndexTensor* found = ids_of(input)) ids = *found;
    if (const IndexTensor* found = named_input("attention_mask")) mask = *found;
    return input;
  }
};

TEST(RunModel, GivesModulesTheIdsAndWhatGoesWithThem) {
  Sequential model;
  auto& witness = static_cast<Witness&>(model.add("witness", std::make_unique<Witness>()));
  Batch batch;
  batch.size = 1;
  batch.named["input_ids"] = IndexTensor(Shape{1, 3}, {5, 1 << 20, 0});
  batch.named["attention_mask"] = IndexTensor(Shape{1, 3}, {1, 1, 0});
  const Variable output = run_model(model, batch);
  EXPECT_THAT(witness.ids.values(), testing::ElementsAre(5, 1 << 20, 0));
  EXPECT_THAT(witness.mask.values(), testing::ElementsAre(1, 1, 0));
  EXPECT_THAT(output.value().to_vector(), testing::ElementsAre(5.0f, 1048576.0f, 0.0f));
  EXPECT_EQ(named_input("attention_mask"), nullptr);
}

TEST(RunModel, GivesOtherInputsAsTheyAre) {
  Sequential model;
  auto& witness = static_cast<Witness&>(model.add("witness", std::make_unique<Witness>()));
  Batch batch;
  batch.size = 1;
  batch.inputs = Tensor::full(Shape{1, 2}, 0.5f);
  EXPECT_THAT(run_model(model, batch).value().to_vector(), testing::ElementsAre(0.5f, 0.5f));
  EXPECT_FALSE(witness.ids.defined());
  EXPECT_FALSE(witness.mask.defined());
}

TEST(NamedInputs, InnerOnesHideOuterOnes) {
  NamedTensors outer, inner;
  outer["a"] = IndexTensor(Shape{1}, {1});
  inner["b"] = IndexTensor(Shape{1}, {2});
  const NamedInputs all(outer);
  {
    const NamedInputs some(inner);
    EXPECT_EQ(named_input("a"), nullptr);
    EXPECT_EQ(named_input("b")->values()[0], 2);
  }
  EXPECT_EQ(named_input("a")->values()[0], 1);
}

}  // namespace
}  // namespace lacuna::run_model_test
