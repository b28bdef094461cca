#include "common/measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "common/fed_loops.h"
#include "common/moment.h"
#include "common/operations.h"
#include "common/row.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"

namespace lacuna::bench {
namespace {

const Timing kFirst{.median_ms = 1.0,
                    .mean_ms = 1.5,
                    .spread = 0.1,
                    .repetitions = 10,
                    .quiet = 9,
                    .is_quiet = true,
                    .busy_ms = 2.0,
                    .l1_fed_gflops = 100.0,
                    .fma_gflops = 200.0};
const Timing kSecond{.median_ms = 3.0,
                     .mean_ms = 3.5,
                     .spread = 0.3,
                     .repetitions = 8,
                     .quiet = 4,
                     .is_quiet = true,
                     .busy_ms = 5.0,
                     .l1_fed_gflops = 140.0,
                     .fma_gflops = 180.0};

TEST(Timing, OfTwoWorksIsThatOfOneAfterTheOther) {
  const Timing sum = kFirst + kSecond;
  EXPECT_DOUBLE_EQ(sum.median_ms, 4.0);
  EXPECT_DOUBLE_EQ(sum.mean_ms, 5.0);
  EXPECT_DOUBLE_EQ(sum.spread, (0.1 + 3 * 0.3) / 4);
  EXPECT_EQ(sum.repetitions, 8);
  EXPECT_EQ(sum.quiet, 4);
  EXPECT_TRUE(sum.is_quiet);
  EXPECT_DOUBLE_EQ(sum.busy_ms, 7.0);
  EXPECT_DOUBLE_EQ(sum.l1_fed_gflops, (100.0 + 3 * 140.0) / 4);
  EXPECT_DOUBLE_EQ(sum.fma_gflops, (200.0 + 3 * 180.0) / 4);
}

TEST(Timing, OfTwoWorksIsQuietWhereBothAre) {
  Timing busy = kSecond;
  busy.is_quiet = false;
  EXPECT_FALSE((kFirst + busy).is_quiet);
  busy.busy_ms = 0.0;  // unknown of one: unknown of both
  EXPECT_EQ((kFirst + busy).busy_ms, 0.0);
}

TEST(Timing, OfManyTimesAWorkKeepsItsRates) {
  const Timing many = kFirst * 3.0;
  EXPECT_DOUBLE_EQ(many.median_ms, 3.0);
  EXPECT_DOUBLE_EQ(many.busy_ms, 6.0);
  EXPECT_DOUBLE_EQ(many.spread, 0.1);
  EXPECT_DOUBLE_EQ(many.l1_fed_gflops, 100.0);
}

TEST(Measure, CountsRepetitionsAndLooksAtTheMachineBesideThem) {
  set_num_threads(1);
  int prepared = 0, first = 0, second = 0;
  const std::vector<Work> works = {
      {"two stages", {[&] { ++first; }, [&] { ++second; }}, [&] { ++prepared; }},
      {"sleep", {[] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }}}};
  const auto timings = measure(works, {.repetitions = 7, .runs = 2});
  ASSERT_EQ(timings.size(), 2u);
  const std::vector<Timing>& stages = timings.at("two stages");
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(first, 7 * 2 + 1);  // once to warm up
  EXPECT_EQ(second, first);
  EXPECT_EQ(prepared, first);
  EXPECT_LE(stages[0].median_ms, stages[1].median_ms);
  for (const Timing& time : stages) {
    EXPECT_EQ(time.repetitions, 7);
    EXPECT_LE(time.quiet, 7);
    EXPECT_GT(time.l1_fed_gflops, 0.0);
    EXPECT_GT(time.fma_gflops, 0.0);
    EXPECT_EQ(time.busy_ms == 0.0, time.quiet == 7);
  }
  const Timing& sleep = timings.at("sleep")[0];
  EXPECT_GE(sleep.median_ms, 1.0);
  EXPECT_EQ(sleep.quiet, 0) << "a thread that does not run has no quiet moment";
  EXPECT_FALSE(sleep.is_quiet);
  EXPECT_EQ(stages[0].is_quiet, stages[0].quiet >= 3) << "of seven, three are enough";
  EXPECT_EQ(sleep.busy_ms, sleep.median_ms);
}

TEST(MachineProbe, CallsQuietWhatIsNearItsBest) {
  MachineProbe& probe = MachineProbe::instance();
  const double best = probe.best_l1_fed_gflops();
  EXPECT_TRUE(probe.is_quiet({.l1_fed_gflops = best}));
  EXPECT_TRUE(probe.is_quiet({.l1_fed_gflops = 0.81 * best}));
  EXPECT_FALSE(probe.is_quiet({.l1_fed_gflops = 0.79 * best}));
  EXPECT_FALSE(probe.is_quiet({.l1_fed_gflops = best, .own_time = 0.9}));
}

TEST(FedLoops, MultiplyAndAddEveryElement) {
  Tensor data = Tensor::full(Shape{2 * kFedLoopFloats}, 1.0f);
  const double once = fed_loop(data.storage(), 1), thrice = fed_loop(data.storage(), 3);
  EXPECT_NEAR(thrice - once, 2e-3 * 2 * kFedLoopFloats, 1e-2);
  data.mutable_storage()[kFedLoopFloats + 77] = 1e6f;
  EXPECT_NEAR(fed_loop(data.storage(), 1) - once, 1e3, 1.0);
  EXPECT_FLOAT_EQ(read_loop(data.storage()), 1e6f + 2 * kFedLoopFloats - 1);
  EXPECT_TRUE(std::isfinite(register_loop(kFedLoopFloats, 3)));
}

TEST(Operations, AreThoseOfTheNonzerosOfAllExamples) {
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 6, .out_features = 4});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 4, .out_features = 2});
  model.initialize(0);
  EXPECT_EQ(operations_of(model, Shape{6}, 5, Extent::Forward), 5 * 2 * (24 + 8));
  // The first layer's input wants no gradient.
  EXPECT_EQ(operations_of(model, Shape{6}, 5, Extent::Training), 5 * 2 * (2 * 24 + 3 * 8));
  BitMask mask = BitMask::zeros(8);
  mask.set(3);
  Parameter& weight = *model.parameter("fc2.weight");
  weight.set_pattern(Pattern::masked(weight.shape(), mask));
  EXPECT_EQ(operations_of(model, Shape{6}, 5, Extent::Training), 5 * 2 * (2 * 24 + 3 * 1));
}

TEST(Row, SaysATimeAndItsMoment) {
  Config row = Config::map({{"workload", "test"}});
  add_time(row, {.time = kFirst, .operations = 5e7});
  EXPECT_EQ(row.required<double>("ms"), 1.0);
  EXPECT_EQ(row.required<int>("repetitions"), 10);
  EXPECT_EQ(row.required<int>("quiet_samples"), 9);
  EXPECT_EQ(row.required<std::string>("moment"), "quiet");
  EXPECT_EQ(row.required<double>("busy_ms"), 2.0);
  EXPECT_DOUBLE_EQ(row.required<double>("gflops_nonzeros"), 50.0);
  EXPECT_EQ(row.required<double>("l1_fed_gflops"), 100.0);
  EXPECT_DOUBLE_EQ(row.required<double>("l1_share"), 0.5);
  EXPECT_EQ((Rate{kFirst, 5e7}).share_text(), "50 %");
  EXPECT_EQ((Rate{kFirst, 5e7}).quiet_text(), "9/10");
}

TEST(Row, LeavesRatesOutWhereNothingIsMultiplied) {
  Timing time = kFirst;
  time.is_quiet = false;
  time.busy_ms = 0.0;
  Config row = Config::map({});
  add_time(row, {.time = time});
  EXPECT_TRUE(row.get("gflops_nonzeros").is_null());
  EXPECT_TRUE(row.get("l1_share").is_null());
  EXPECT_TRUE(row.get("busy_ms").is_null());
  EXPECT_EQ(row.required<std::string>("moment"), "any");
  EXPECT_EQ(Rate{time}.share_text(), "");
  EXPECT_EQ(Rate{time}.quiet_text(), "(9/10)");
}

}  // namespace
}  // namespace lacuna::bench
