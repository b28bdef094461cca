// `lacuna train --profile`: its table, its files, and that it changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::profile_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

class ProfileRun : public RunFixture {
 protected:
  std::vector<std::string> rigl() const {
    return {"--set",
            "sparsity={algorithm: rigl, sparsity: 0.8, param_filter: fc1.weight, "
            "update: {freq: 4}}"};
  }
  Ended profiled(std::vector<std::string> more, const std::string& name = "run") const {
    more.push_back("--profile");
    return train(more, name);
  }
  Config profile(const std::string& name = "run") const {
    return load_yaml(run_dir(name) + "/profile.json");
  }
};

TEST_F(ProfileRun, CountsTimeByLayerAndKind) {
  const Ended ended = profiled(rigl());
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\nprofile   18 steps in "), HasSubstr("\nms per step "),
                               HasSubstr("\nfc1  linear "), HasSubstr("\n(loss) "),
                               HasSubstr("\n(outside of layers) "), HasSubstr("\nall ")));
  const Config report = profile();
  EXPECT_EQ(report.at("steps").as<int>(), 18);
  double sum = report.at("outside_of_layers").at("all").as<double>();
  std::set<std::string> paths;
  for (const Config& layer : report.at("layers").items()) {
    paths.insert(layer.at("path").text());
    sum += layer.at("all").as<double>();
    if (layer.at("path").text() != "fc1") continue;
    for (const char* kind : {"forward", "backward", "optimizer", "masks", "evaluation"}) {
      EXPECT_GT(layer.at(kind).as<double>(), 0.0) << kind;
    }
  }
  EXPECT_THAT(paths, IsSupersetOf({"fc1", "fc2", "(loss)"}));
  const Config all = report.at("milliseconds_per_step");
  for (const char* kind : {"data", "checkpoints"}) EXPECT_GT(all.at(kind).as<double>(), 0.0);
  EXPECT_NEAR(sum, all.at("all").as<double>(), 1e-9 * sum);
  EXPECT_NEAR(all.at("all").as<double>(), 1e3 * report.at("seconds").as<double>() / 18,
              1e-6 * all.at("all").as<double>());
}

TEST_F(ProfileRun, WritesATraceThatBrowsersShow) {
  ASSERT_EQ(profiled(rigl()).code, 0);
  const Config trace = load_yaml(run_dir() + "/profile_trace.json");
  int steps = 0;
  for (const Config& event : trace.at("traceEvents").items()) {
    EXPECT_EQ(event.at("ph").text(), "X");
    EXPECT_GE(event.at("ts").as<double>(), 0.0);
    EXPECT_GE(event.at("dur").as<double>(), 0.0);
    steps += event.at("name").text() == "step" ? 1 : 0;
  }
  EXPECT_EQ(steps, 18);
}

TEST_F(ProfileRun, ChangesNoBits) {
  ASSERT_EQ(train(rigl(), "plain").code, 0);
  ASSERT_EQ(profiled(rigl()).code, 0);
  EXPECT_THAT(differences(read_checkpoint(checkpoint(18)).state,
                          read_checkpoint(checkpoint(18, "plain")).state),
              IsEmpty());
  EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir("plain")));
  EXPECT_THAT(listing(run_dir("plain")), Not(HasSubstr("profile")));
}

TEST_F(ProfileRun, IsOfThePartThatWasTrained) {
  ASSERT_EQ(train({"--profile"}, "run", {.fault = "step.between:7:interrupt"}).code, 130);
  EXPECT_EQ(profile().at("steps").as<int>(), 7);
  const Ended ended = profiled({"--resume", "--quiet"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, Not(HasSubstr("profile")));
  EXPECT_EQ(profile().at("steps").as<int>(), 11);
}

TEST_F(ProfileRun, CountsShardsAndTeachers) {
  ASSERT_EQ(profiled({"--set", "train.shards=2"}).code, 0);
  for (const Config& layer : profile().at("layers").items()) {
    if (layer.at("path").text() != "fc2") continue;
    EXPECT_GT(layer.at("forward").as<double>(), 0.0);
    EXPECT_GT(layer.at("backward").as<double>(), 0.0);
  }
  ASSERT_EQ(
      profiled({"--set", "loss={type: distillation, teacher: " + run_dir() + "}"}, "student").code,
      0);
  EXPECT_GT(profile("student").at("milliseconds_per_step").at("teacher").as<double>(), 0.0);
}

}  // namespace
}  // namespace lacuna::profile_test
