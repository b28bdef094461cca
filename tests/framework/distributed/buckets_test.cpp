// Which messages gradients are sent in.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/distributed/data_parallel.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "random_values.h"

namespace lacuna::buckets_test {
namespace {

class Arrived final : public PendingMessages {
 public:
  bool is_done() override { return true; }
  void wait() override {}
};

// The first of several processes, of which the others send zeros at once; notes what it sends.
class First final : public Communicator {
 public:
  explicit First(int processes) : processes_(processes) {}

  std::unique_ptr<PendingMessages> start(int, std::span<const Outgoing> sent,
                                         std::span<const Incoming> received) override {
    for (const Incoming& in : received) std::ranges::fill(in.into, 0.0f);
    int64_t floats = 0;
    for (const Outgoing& out : sent) floats += static_cast<int64_t>(out.values.size());
    exchanges.push_back(floats);
    return std::make_unique<Arrived>();
  }
  std::unique_ptr<PendingMessages> start_sum(std::span<const float> own,
                                             std::span<float> total) override {
    std::ranges::copy(own, total.begin());
    sums.push_back(static_cast<int64_t>(own.size()));
    return std::make_unique<Arrived>();
  }
  int rank() const override { return 0; }
  int size() const override { return processes_; }
  int last_tag() const override { return 32767; }

  // Nothing else is asked of it.
  std::vector<std::vector<double>> gather(std::span<const double>) override { return {}; }
  void swap(int, std::span<const double>, std::span<double>) override {}
  std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t>) override { return {}; }
  std::vector<std::string> gather_texts(const std::string&) override { return {}; }
  std::string from_first(const std::string& bytes) override { return bytes; }
  [[noreturn]] void abort(int) override { std::abort(); }
  void leave() override {}
  int64_t bytes_sent() const override { return 0; }
  int64_t bytes_gathered() const override { return 0; }

  std::vector<int64_t> exchanges, sums;

 private:
  int processes_;
};

constexpr int64_t kLayers = 20, kFeatures = 64;
constexpr int64_t kFloats = kLayers * (kFeatures + 1) * kFeatures;

// What a communicator is given in each of two steps.
struct Steps {
  std::vector<std::vector<int64_t>> exchanges, sums;
};

Steps two_steps(int processes, SumOrder order) {
  Sequential model;
  for (int64_t i = 0; i < kLayers; ++i) {
    model.add<Linear>("fc" + std::to_string(i),
                      {.in_features = kFeatures, .out_features = kFeatures});
  }
  model.initialize(1);
  const auto job = std::make_shared<First>(processes);
  DataParallel parallel(model, job, {.shards = processes, .order = order});
  const Tensor x = random_tensor({2, kFeatures}, "x");
  Steps steps;
  for (int i = 0; i < 2; ++i) {
    DataParallel::Step step(parallel, {{0, {0, 2}, nullptr}}, processes);
    const std::vector<Variable> outputs = model.forward_shards(std::vector{Variable(x)});
    std::vector<Variable> losses;
    for_each_shard([&](size_t s) { losses.push_back(mse_loss(outputs[s], Variable(x))); });
    backward(losses, std::vector<Tensor>{Tensor::full(Shape{}, 1.0f)});
    step.finish();
    steps.exchanges.push_back(std::exchange(job->exchanges, {}));
    steps.sums.push_back(std::exchange(job->sums, {}));
  }
  return steps;
}

int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

TEST(Buckets, AreEighthsOfAllThatTheStepBeforeHasSent) {
  const Steps steps = two_steps(2, SumOrder::Tree);
  for (const std::vector<int64_t>& exchanges : steps.exchanges) {
    EXPECT_EQ(sum(exchanges), kFloats);  // half of each there, and half back
  }
  EXPECT_EQ(steps.exchanges[0].size(), 2u * 2);  // of 65536
  // A layer is a twentieth, so that three of them are more than an eighth, but for the last two.
  EXPECT_EQ(steps.exchanges[1].size(), 2u * 7);
  EXPECT_LE(steps.exchanges[1].back(), kFloats / 8);
}

TEST(Buckets, InAnyOrderAreSummedByMpiFromFourProcessesOn) {
  for (const int processes : {2, 3}) {
    const Steps few = two_steps(processes, SumOrder::Any);
    EXPECT_TRUE(few.sums[1].empty());
    EXPECT_FALSE(few.exchanges[1].empty());
  }
  const Steps four = two_steps(4, SumOrder::Any);
  EXPECT_TRUE(four.exchanges[1].empty());
  EXPECT_EQ(sum(four.sums[1]), kFloats);
  EXPECT_TRUE(two_steps(4, SumOrder::Tree).sums[1].empty());
}

}  // namespace
}  // namespace lacuna::buckets_test
