// Decaying weights never become denormal, so that a step on them costs what any other does.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "sparsity/test_model.h"

namespace lacuna::denormals_test {
namespace {

using testing::Each;
using testing::Pair;

int64_t count_denormals(const Tensor& tensor) {
  int64_t count = 0;
  for (const float value : tensor.storage()) count += std::fpclassify(value) == FP_SUBNORMAL;
  return count;
}

// The caller's arithmetic keeps denormals, as the language says.
bool keeps_denormals() {
  volatile float smallest = std::numeric_limits<float>::min();
  const float half = smallest * 0.5f;
  return std::fpclassify(half) == FP_SUBNORMAL;
}

class Denormals : public testing::TestWithParam<std::tuple<int, const Layout*>> {
 protected:
  Denormals() : saved_(num_threads()) { set_num_threads(std::get<0>(GetParam())); }
  ~Denormals() override { set_num_threads(saved_); }

  // All weights, gradients and states, after each of many steps in which the weights fall to 0.6 of
  // what they were and the inputs are nearly nothing.
  void run(TestModel& m, Optimizer& optimizer) {
    for (int64_t i = 0; i < m.x.numel(); ++i) m.x.mutable_data()[i] *= 1e-20f;
    const Shape shape = m.weight().shape();
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < shape.numel(); i += 1 + i % 3) kept.push_back(i);
    m.weight().set_pattern(
        Pattern::make(*std::get<1>(GetParam()), shape, Positions::of(shape, kept)));
    for (int step = 0; step < 300; ++step) {
      Variable activation(m.x);
      for (const auto& [name, layer] : m.model.children()) {
        activation = (*layer)(activation);
        denormals_["activation " + name] += count_denormals(activation.value());
      }
      backward(cross_entropy(activation, m.labels));
      for (const ParameterPtr& p : m.model.parameters()) {
        denormals_["gradient " + p->name()] += count_denormals(p->gradient());
      }
      optimizer.step();
      optimizer.zero_grad();
      for (const ParameterPtr& p : m.model.parameters()) {
        denormals_["values " + p->name()] += count_denormals(p->values());
        for (const auto& [name, slot] : p->slots()) {
          denormals_[name + " " + p->name()] += count_denormals(slot.values);
        }
      }
    }
    EXPECT_THAT(denormals_, Each(Pair(testing::_, 0)));
    EXPECT_TRUE(keeps_denormals());
  }

  std::map<std::string, int64_t> denormals_;

 private:
  int saved_;
};

INSTANTIATE_TEST_SUITE_P(ThreadsAndLayouts, Denormals,
                         testing::Combine(testing::Values(1, 2, 5),
                                          testing::Values(&masked_layout(), &csr_layout())),
                         [](const auto& made) {
                           return std::string(std::get<1>(made.param)->name()) + "_" +
                                  std::to_string(std::get<0>(made.param));
                         });

TEST_P(Denormals, AreNeverLeftByDecay) {
  TestModel m;
  Sgd sgd(m.model.parameters(), {.lr = 0.4, .momentum = 0.5, .weight_decay = 1.0});
  run(m, sgd);
}

TEST_P(Denormals, AreNeverLeftByDecoupledDecay) {
  TestModel m;
  AdamW adamw(m.model.parameters(), {.lr = 0.4, .betas = {0.5, 0.6}, .weight_decay = 1.0});
  run(m, adamw);
}

}  // namespace
}  // namespace lacuna::denormals_test
