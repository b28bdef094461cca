#include "lacuna/framework/program/actions/read_given.hpp"

#include <gtest/gtest.h>

#include "framework/train/tiny_run.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "throws.h"

namespace lacuna::read_given_test {
namespace {

class ProcessOptions : public testing::Test {
 protected:
  ~ProcessOptions() override { set_num_threads(threads_before_); }
  static Config with_threads(int threads) {
    Config config = parse_yaml(kTinyRun, "tiny");
    config.get("train").set("threads", threads);
    return config;
  }

 private:
  int threads_before_ = num_threads();
};

TEST_F(ProcessOptions, SetTheNumberOfThreads) {
  apply_process_options(with_threads(3));
  EXPECT_EQ(num_threads(), 3);
  apply_process_options(with_threads(0));  // as it is
  EXPECT_EQ(num_threads(), 3);
}

TEST_F(ProcessOptions, LeaveKeysUnread) {
  Config config = with_threads(1);
  config.get("train").set("thread", 2);
  apply_process_options(config);
  expect_throws<ConfigError>([&] { config.require_all_read(); }, "unknown key");
  EXPECT_FALSE(config.get("train").has("seed"));  // no default was written
}

TEST_F(ProcessOptions, RefuseABadSection) {
  apply_process_options(parse_yaml("just a text", "text"));  // an error when it is built
  expect_throws<ConfigError>([] { apply_process_options(parse_yaml("train: 3", "bad")); }, "train");
  expect_throws<ConfigError>([] { apply_process_options(with_threads(5000)); },
                             "an integer from 0 to 1024");
}

TEST_F(ProcessOptions, AreNotSetByBuildingAnExperiment) {
  set_num_threads(2);
  build_experiment(with_threads(1));
  EXPECT_EQ(num_threads(), 2);
}

}  // namespace
}  // namespace lacuna::read_given_test
