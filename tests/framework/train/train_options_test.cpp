#include "lacuna/framework/train/train_options.h"

#include <gmock/gmock.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::train_options_test {
namespace {

TrainOptions read(const std::string& yaml) {
  return TrainOptions::from_config(parse_yaml(yaml, "t.yaml"));
}

TEST(Period, ReadsStepsAndEpochs) {
  const auto period = [](const std::string& yaml) {
    return Period::from_config(parse_yaml("every: " + yaml, "t.yaml"), "every", {}).to_string();
  };
  EXPECT_EQ(period("500"), "500 steps");
  EXPECT_EQ(period("1"), "1 step");
  EXPECT_EQ(period("1e3"), "1000 steps");
  EXPECT_EQ(period("500 steps"), "500 steps");
  EXPECT_EQ(period("1 step"), "1 step");
  EXPECT_EQ(period("2 epochs"), "2 epochs");
  EXPECT_EQ(period("1 epoch"), "1 epoch");
}

TEST(Period, RefusesWhatIsNoTime) {
  for (const char* text :
       {"0", "-1", "1.5", "2 weeks", "epochs", "0 epochs", "-2 epochs", "1epoch", "2  epochs",
        "[1]", "{epochs: 1}", "true", ".inf", "99999999999999999999 steps"}) {
    expect_throws<ConfigError>(
        [&] {
          Period::from_config(parse_yaml("every: " + std::string(text), "t.yaml"), "every", {});
        },
        "t.yaml:1:8: every: expected a number of steps of at least 1, '500 steps' or '2 epochs', "
        "found ");
  }
}

TEST(Period, ConvertsToStepsWithoutOverflow) {
  EXPECT_EQ(Period::steps(7).in_steps(10), 7);
  EXPECT_EQ(Period::epochs(7).in_steps(10), 70);
  EXPECT_EQ(Period::epochs(INT64_MAX).in_steps(10), kMaxSteps);
  EXPECT_EQ(Period::steps(INT64_MAX).in_steps(1), kMaxSteps);
}

TEST(TrainOptions, TrainsInFloat32Alone) {
  EXPECT_EQ(read("{steps: 5, precision: float32}").length.to_string(), "5 steps");
  for (const char* name : {"bf16", "bfloat16"}) {
    expect_throws<ConfigError>(
        [&] { read("{steps: 5, precision: " + std::string(name) + "}"); },
        "t.yaml:1:23: precision: lacuna does not train in bf16: whole steps at 90 % sparsity");
  }
  expect_throws<ConfigError>([] { read("{steps: 5, precision: flaot32}"); },
                             "unknown precision 'flaot32'; did you mean 'float32'?");
  expect_throws<ConfigError>([] { read("{steps: 5, precision: half}"); },
                             "unknown precision 'half'; valid names: float32");
}

TEST(TrainOptions, HasDefaultsThatAreWrittenIntoTheConfiguration) {
  Config train = Config::map();
  const TrainOptions o = TrainOptions::from_config(train);
  EXPECT_EQ(o.length.to_string(), "10 epochs");
  EXPECT_EQ(o.batch_size, 128);
  EXPECT_EQ(o.accumulate, 1);
  EXPECT_FALSE(o.drop_last);
  EXPECT_EQ(o.seed, 0u);
  EXPECT_EQ(o.threads, 0);
  EXPECT_EQ(o.checkpoint.keep_last, 3);
  EXPECT_FALSE(o.early_stopping.has_value());
  for (const char* key : {"epochs", "batch_size", "accumulate", "drop_last", "seed", "threads",
                          "prefetch", "eval_batch_size", "eval_every", "log_every", "checkpoint"}) {
    EXPECT_TRUE(train.has(key)) << key;
  }
  // What was written reads back as the same.
  const TrainOptions again = read(train.to_yaml());
  EXPECT_EQ(again.eval_every.to_string(), "1 epoch");
  EXPECT_EQ(again.checkpoint.every.to_string(), "1 epoch");
}

TEST(TrainOptions, ReadsEverything) {
  const TrainOptions o = read(
      "{steps: 9, batch_size: 2, accumulate: 3, drop_last: true, seed: 18446744073709, threads: 4, "
      "prefetch: 0, eval_batch_size: 5, eval_every: 6, log_every: 2 epochs, trace_autograd: true, "
      "checkpoint: {every: 8 steps, keep_last: 1, keep_best: true}, "
      "early_stopping: {patience: 2, min_delta: 0.5}}");
  EXPECT_EQ(o.length.to_string(), "9 steps");
  EXPECT_EQ(o.accumulate, 3);
  EXPECT_TRUE(o.drop_last);
  EXPECT_EQ(o.seed, 18446744073709u);
  EXPECT_EQ(o.threads, 4);
  EXPECT_EQ(o.prefetch, 0);
  EXPECT_EQ(o.log_every.to_string(), "2 epochs");
  EXPECT_TRUE(o.trace_autograd);
  EXPECT_EQ(o.checkpoint.every.to_string(), "8 steps");
  EXPECT_TRUE(o.checkpoint.keep_best);
  ASSERT_TRUE(o.early_stopping.has_value());
  EXPECT_EQ(o.early_stopping->patience, 2);
  EXPECT_EQ(o.early_stopping->min_delta, 0.5);
}

TEST(TrainOptions, ReadsAnAverageInBothForms) {
  EXPECT_FALSE(read("{steps: 9}").ema.has_value());
  EXPECT_EQ(read("{ema: 0.9}").ema->decay, 0.9);
  EXPECT_EQ(read("{ema: 0.9}").ema->start, 0);
  EXPECT_EQ(read("{ema: {decay: 0.5, start: 100}}").ema->start, 100);
  expect_throws<ConfigError>([] { read("{ema: 1.0}"); },
                             "t.yaml:1:7: ema: expected a number in [0, 1), found '1.0'");
  expect_throws<ConfigError>([] { read("{ema: {decay: -0.1}}"); },
                             "ema.decay: expected a number in [0, 1), found '-0.1'");
  expect_throws<ConfigError>([] { read("{ema: {start: 5}}"); },
                             "ema.decay: a required key is missing");
  expect_throws<ConfigError>([] { read("{ema: {decay: 0.5, start: -1}}"); }, "ema.start: expected");
}

TEST(TrainOptions, RefusesWhatIsOutOfRange) {
  expect_throws<ConfigError>([] { read("{threads: 1025}"); },
                             "t.yaml:1:11: threads: expected an integer from 0 to 1024");
  expect_throws<ConfigError>([] { read("{prefetch: -1}"); }, "an integer from 0 to 1024");
  expect_throws<ConfigError>([] { read("{eval_batch_size: 0}"); }, "an integer from 1 to ");
  expect_throws<ConfigError>([] { read("{early_stopping: {min_delta: -1}}"); },
                             "early_stopping.min_delta: expected a number from 0.0");
  expect_throws<ConfigError>([] { read("[1]"); }, "expected a map, found a list of 1 value");
}

template <class Judge>
std::string warnings_of(const Judge& judge) {
  log_to_console(LogLevel::Warning);
  testing::internal::CaptureStderr();
  judge();
  stop_logging();
  return testing::internal::GetCapturedStderr();
}

TEST(TrainOptions, AnAverageThatNeverBeginsIsTold) {
  const auto told = [](const std::string& ema, int64_t steps) {
    const TrainOptions o =
        TrainOptions::from_config(parse_yaml("{steps: 5, ema: " + ema + "}", "t"));
    return warnings_of([&] { warn_about_average(o, steps); });
  };
  EXPECT_EQ(told("{decay: 0.9, start: 4}", 5), "");
  EXPECT_EQ(told("0.9", 5), "");
  EXPECT_THAT(told("{decay: 0.9, start: 5}", 5),
              testing::HasSubstr("the average begins at step 5, and the run ends after 5"));
}

TEST(TrainOptions, RatesOfZeroAreReported) {
  const auto told = [](const std::string& lr, int64_t from, int64_t steps) {
    const Config optimizer = parse_yaml("{type: sgd, lr: " + lr + "}", "t");
    return warnings_of([&] { warn_about_rates_of_zero(optimizer, from, steps); });
  };
  const std::string cosine = "{type: cosine_once, init: 0.1, minimum: 0.0, half_period: 100}";
  EXPECT_EQ(told(cosine, 0, 100), "");
  EXPECT_EQ(told(cosine, 0, 105), "") << "less than a tenth";
  EXPECT_EQ(told(cosine, 60, 105), "") << "of the run";
  EXPECT_THAT(told(cosine, 0, 200), testing::HasSubstr("the learning rate is 0 from step 100 to"));
  EXPECT_THAT(told(cosine, 100, 110), testing::HasSubstr("is 0 from step 100"));
  EXPECT_THAT(told(cosine, 0, 1'000'000), testing::HasSubstr("is 0 from step 100 to"));
  EXPECT_THAT(told(cosine, 0, 100'000'000), testing::HasSubstr("is 0 from step 100 to"));
  EXPECT_EQ(told("[0.1, 0.0]", 0, 10'000), "");
  EXPECT_EQ(told("[0.1, 0.1, 0.0]", 0, 20'001), "");
  EXPECT_EQ(told("[0.1, 0.0]", 0, 1'500'000), "");
  EXPECT_EQ(told(cosine + ", groups: [{params: a, lr: 0.1}]", 0, 200), "") << "which trains on";
  EXPECT_EQ(told("{type: cosine_once, init: 0.1, minimum: 0.01, half_period: 100}", 0, 200), "");
  EXPECT_EQ(told("0.0", 0, 200), "") << "as asked for";
  EXPECT_EQ(told("{type: cosine, init: 0.1, minimum: 0.0, half_period: 100}", 0, 300), "")
      << "which rises again";
}

TEST(TrainOptions, TheGreedySearchIsReportedOnce) {
  const auto told = [](const std::string& text) {
    return warnings_of([&] { warn_about_greedy_search(parse_yaml(text, "t.yaml")); });
  };
  EXPECT_EQ(told("{sparsity: {pattern: {transposable: true, search: exact}}}"), "");
  EXPECT_EQ(told("{sparsity: {algorithm: own, search: greedy}}"), "");
  EXPECT_EQ(told("{sparsity: [0.5, {pattern: {transposable: true, search: Greedy}}],\n"
                 " sparsify: [{sparsifier: {transposable: true, search: greedy}}]}"),
            "warning: t.yaml:1:57: sparsity.1.pattern.search: the greedy search no longer exists; "
            "masks are chosen by the exact one\n");
}

}  // namespace
}  // namespace lacuna::train_options_test
