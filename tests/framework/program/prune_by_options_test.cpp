// `lacuna prune` without a YAML file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::prune_by_options_test {
namespace {

using testing::HasSubstr;

class PruneByOptions : public RunFixture {
 protected:
  std::string prune_config() const { return folder_ / "prune.yaml"; }
  Ended prune(const std::string& to, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"prune", run_dir(), "--run-dir", run_dir(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  Config first_row(const std::string& name) const {
    return load_yaml(run_dir(name) + "/prune.json").at("rows").items()[0];
  }
};

// Without a file: a method with its defaults, which a line names.
TEST_F(PruneByOptions, TakesOptionsInThePlaceOfAFile) {
  ASSERT_EQ(train().code, 0);
  const Ended plain = prune("plain", {"--sparsity", "0.75"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(
      plain.err,
      testing::StartsWith(
          "no CONFIG is given: prunes by {algorithm: admm, sparsity: 0.75, least_squares: true}; "
          "--method and --set choose others\n"));
  // The same as by a file that says it.
  write_text(prune_config(), "sparsity: {algorithm: admm, sparsity: 0.75, least_squares: true}\n");
  ASSERT_EQ(prune("by file", {prune_config()}).code, 0);
  const auto state = [&](const std::string& name) {
    return find_checkpoint(run_dir(name)).read().state.below("model");
  };
  EXPECT_THAT(differences(state("plain"), state("by file")), testing::IsEmpty());
  EXPECT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("plain"), "--quiet"}).code, 0);

  const Ended wanda = prune("wanda", {"--method", "wanda", "--sparsity", "0.5"});
  ASSERT_EQ(wanda.code, 0) << wanda.err;
  EXPECT_THAT(wanda.err, HasSubstr("prunes by {algorithm: wanda, sparsity: 0.5}"));
  EXPECT_EQ(first_row("wanda").at("method").text(), "wanda");
  const Ended pattern = prune(
      "pattern", {"--set", "sparsity={algorithm: magnitude, pattern: {type: nm, n: 2, m: 4}}"});
  EXPECT_EQ(pattern.code, 0) << pattern.err;
  // Next to a file they are short for --set.
  write_text(prune_config(), "sparsity: {algorithm: wanda, sparsity: 0.5, calibration: 40}\n");
  ASSERT_EQ(prune("both", {prune_config(), "--sparsity", "0.25", "--method", "magnitude"}).code, 0);
  EXPECT_EQ(first_row("both").at("method").text(), "magnitude");
  EXPECT_NEAR(first_row("both").required<double>("sparsity"), 0.25, 0.01);
}

TEST_F(PruneByOptions, TeachesByTheNetworkThatIsPruned) {
  ASSERT_EQ(train().code, 0);
  const Ended taught = prune("taught", {"--sparsity", "0.5", "--set", "loss=distillation"});
  ASSERT_EQ(taught.code, 0) << taught.err;
  const Config loss = load_yaml(run_dir("taught") + "/config.yaml").at("loss");
  EXPECT_EQ(loss.required<std::string>("teacher"), checkpoint(18));
  EXPECT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("taught"), "--quiet"}).code, 0);
}

TEST_F(PruneByOptions, NeedsAFileOrASparsity) {
  ASSERT_EQ(train().code, 0);
  const auto refused = [&](const std::vector<std::string>& options, const std::string& message) {
    const Ended ended = prune("pruned", options);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(run_dir("pruned")));
  };
  refused({}, "error: prune needs --sparsity S, or a CONFIG file whose section `sparsity` sets");
  refused({"--method", "wanda"}, "needs `sparsity` (or `density`, or `fan_in`)");
  refused({"--sparsity", "0.5", "--method", "wnda"},
          "unknown sparsity algorithm 'wnda'; did you mean 'wanda'?");
  refused({"--sparsity", "1.5"}, "sparsity");
  refused({"--sparsity", "0.5", "--method", "static"}, "prune takes magnitude, wanda, sparsegpt");
}

TEST_F(PruneByOptions, NamesTheSectionOfInputsThatCannotBeUsed) {
  std::string table = "x,y,label\n";
  for (int i = 0; i < 30; ++i) {
    for (const int part : {7, 5}) table += std::to_string(i % part) + "e22,";
    table += std::to_string(i % 3) + "\n";
  }
  folder_.write("large.csv", table);
  write_text(config(), "data: {type: csv, train: '" + (folder_ / "large.csv") + R"(', test: 0.2}
model: [{type: linear, name: fc1, out_features: 12}, relu, {type: linear, name: fc2}]
optimizer: {type: sgd, lr: 1.0e-30}
train: {steps: 1, batch_size: 8, threads: 1}
)");
  ASSERT_EQ(train({"--set", "data.normalize=none"}).code, 0);
  write_text(prune_config(), "sparsity: {algorithm: wanda, sparsity: 0.5}\n");
  const Ended ended = prune("pruned", {prune_config()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("error: " + prune_config() +
                                   ":1:11: sparsity: layer 'fc1.weight': its calibration inputs"));
  const Ended shrunk = run_lacuna({"shrink", run_dir(), "--run-dir", run_dir("shrunk"), "--to",
                                   "flops=0.5", "--method", "error"});
  EXPECT_EQ(shrunk.code, 1);
  EXPECT_THAT(shrunk.err, HasSubstr("shrink: "));
  EXPECT_THAT(shrunk.err, HasSubstr("finite"));
}

}  // namespace
}  // namespace lacuna::prune_by_options_test
