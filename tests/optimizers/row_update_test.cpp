// Steps of parameters whose gradient is kept by rows: they change and cost those rows alone.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/param/row_gradient.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "state_differences.h"

namespace lacuna::row_update_test {
namespace {

constexpr int64_t kRows = 11, kColumns = 7;

using Make = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterPtr>)>;

const std::vector<std::pair<const char*, Make>>& optimizers() {
  static const std::vector<std::pair<const char*, Make>> all = {
      {"sgd", [](auto p) { return std::make_unique<Sgd>(p, SgdOptions{.lr = 0.1}); }},
      {"momentum",
       [](auto p) {
         return std::make_unique<Sgd>(
             p, SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
       }},
      {"adam",
       [](auto p) {
         return std::make_unique<Adam>(p, AdamOptions{.lr = 0.1, .weight_decay = 0.01});
       }},
      {"adamw", [](auto p) { return std::make_unique<AdamW>(p, AdamWOptions{.lr = 0.1}); }},
  };
  return all;
}

ParameterPtr make_table(bool sparse) {
  auto parameter = std::make_shared<Parameter>(Shape{kRows, kColumns}, Initializer::normal(1.0));
  parameter->set_name("wte.weight");
  parameter->use = WeightUse::Embedding;
  parameter->sparse_gradient = sparse;
  parameter->initialize(3);
  return parameter;
}

// A gradient of these rows that is another one at each step.
void give(Parameter& parameter, const std::vector<int64_t>& rows, int step) {
  const CounterRng rng(static_cast<uint64_t>(step), "gradient");
  parameter.accumulate_rows(rows, [&](std::span<float> gradient, Accumulate accumulate) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      const float value = rng.uniform(i) - 0.5f;
      gradient[i] = accumulate == Accumulate::No ? value : gradient[i] + value;
    }
  });
}

std::vector<int64_t> all_rows() {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < kRows; ++row) rows.push_back(row);
  return rows;
}

TEST(RowUpdate, IsThatOfTheWholeWhereEveryRowIsUsed) {
  for (const auto& [name, make] : optimizers()) {
    const ParameterPtr sparse = make_table(true), whole = make_table(false);
    const auto of_sparse = make({sparse}), of_whole = make({whole});
    for (int step = 0; step < 5; ++step) {
      for (const auto& [parameter, optimizer] :
           {std::pair{sparse, of_sparse.get()}, {whole, of_whole.get()}}) {
        give(*parameter, all_rows(), step);
        optimizer->step();
        optimizer->zero_grad();
      }
    }
    EXPECT_EQ(sparse->values().to_vector(), whole->values().to_vector()) << name;
    EXPECT_THAT(differences(of_sparse->state_dict(), of_whole->state_dict()), testing::IsEmpty())
        << name;
  }
}

TEST(RowUpdate, LeavesOtherRowsAndTheirStatesAsTheyAre) {
  const std::vector<int64_t> used = {2, 5, 6};
  for (const auto& [name, make] : optimizers()) {
    const ParameterPtr parameter = make_table(true);
    const auto optimizer = make({parameter});
    give(*parameter, all_rows(), 0);
    optimizer->step();
    optimizer->zero_grad();
    std::vector<std::vector<float>> before = {parameter->values().to_vector()};
    for (const auto& [slot, state] : parameter->slots()) before.push_back(state.values.to_vector());
    give(*parameter, used, 1);
    optimizer->step();
    std::vector<std::vector<float>> after = {parameter->values().to_vector()};
    for (const auto& [slot, state] : parameter->slots()) after.push_back(state.values.to_vector());
    for (size_t array = 0; array < after.size(); ++array) {
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        const bool is_used = std::ranges::find(used, i / kColumns) != used.end();
        const auto at = static_cast<size_t>(i);
        if (is_used) {
          EXPECT_NE(after[array][at], before[array][at]) << name << ", array " << array;
        } else {
          EXPECT_EQ(after[array][at], before[array][at]) << name << ", array " << array;
        }
      }
    }
  }
}

TEST(RowUpdate, RunsOnTheElementsOfTheRowsAlone) {
  class Counting final : public Optimizer {
   public:
    explicit Counting(std::vector<ParameterPtr> p) : Optimizer(std::move(p), {.lr = 1.0}) {}
    std::string_view type() const override { return "counting"; }
    std::vector<size_t> sizes;

   protected:
    std::vector<StateSlot> state_slots() const override { return {{.name = "sum"}}; }
    void update(const Update& u) override {
      sizes = {u.values.size(), u.gradient.size(), u.states[0].size()};
    }
  };
  auto parameter = std::make_shared<Parameter>(Shape{1 << 16, 8}, Initializer::constant(0.0));
  parameter->set_name("wte.weight");
  parameter->sparse_gradient = true;
  Counting optimizer({parameter});
  give(*parameter, {7, 70, 60000}, 0);
  EXPECT_EQ(parameter->byte_counts().gradient, 3 * 8 * 4 + 3 * 8);
  optimizer.step();
  EXPECT_THAT(optimizer.sizes, testing::Each(3u * 8u));
  // Without tokens nothing is updated.
  optimizer.zero_grad();
  optimizer.sizes.clear();
  give(*parameter, {}, 0);
  optimizer.step();
  EXPECT_THAT(optimizer.sizes, testing::IsEmpty());
}

TEST(RowUpdate, IsClippedByTheNormOfItsRows) {
  const ParameterPtr sparse = make_table(true), whole = make_table(false);
  for (const ParameterPtr& parameter : {sparse, whole}) {
    Sgd optimizer({parameter}, {.lr = 1.0, .clip_norm = 0.01});
    give(*parameter, {2, 5}, 0);
    optimizer.step();
  }
  ASSERT_NE(sparse->row_gradient(), nullptr);
  EXPECT_THAT(sparse->row_gradient()->rows, testing::ElementsAre(2, 5));
  double squares = 0.0;
  for (const float g : sparse->gradient().to_vector()) squares += double{g} * double{g};
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-6);
  // The sum of the squares is formed in another order.
  const std::vector<float> a = sparse->values().to_vector(), b = whole->values().to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6f) << i;
}

TEST(RowUpdate, KeepsMaskedWeightsAtZero) {
  for (const auto& [name, make] : optimizers()) {
    BitMask mask = BitMask::zeros(kRows * kColumns);
    for (int64_t i = 0; i < mask.size(); i += 3) mask.set(i);
    const ParameterPtr sparse = make_table(true), whole = make_table(false);
    for (const ParameterPtr& parameter : {sparse, whole}) {
      parameter->set_pattern(Pattern::masked(parameter->shape(), mask));
      parameter->prune();
      const auto optimizer = make({parameter});
      for (int step = 0; step < 3; ++step) {
        give(*parameter, all_rows(), step);
        optimizer->step();
        optimizer->zero_grad();
        EXPECT_TRUE(parameter == whole || parameter->is_pruned()) << name;
      }
    }
    EXPECT_EQ(sparse->values().to_vector(), whole->values().to_vector()) << name;
  }
}

TEST(RowUpdate, GoesOnFromSavedStatesToTheSameBits) {
  for (const auto& [name, make] : optimizers()) {
    const ParameterPtr first = make_table(true), second = make_table(true);
    const auto whole = make({first}), resumed = make({second});
    const auto step = [](Parameter& parameter, Optimizer& optimizer, int number) {
      give(parameter, {number, number + 3, number + 4}, number);
      optimizer.step();
      optimizer.zero_grad();
    };
    for (int i = 0; i < 3; ++i) step(*first, *whole, i);
    second->assign(first->values());
    resumed->load_state_dict(whole->state_dict());
    for (int i = 3; i < 6; ++i) {
      step(*first, *whole, i);
      step(*second, *resumed, i);
    }
    EXPECT_EQ(first->values().to_vector(), second->values().to_vector()) << name;
    EXPECT_THAT(differences(whole->state_dict(), resumed->state_dict()), testing::IsEmpty())
        << name;
  }
}

}  // namespace
}  // namespace lacuna::row_update_test
