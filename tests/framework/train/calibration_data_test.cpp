// What one-shot algorithms calibrate on where a configuration leaves it out: the resolved one says.
#include "lacuna/framework/train/calibration_data.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"
#include "throws.h"

namespace lacuna::calibration_data_test {
namespace {

// The `sparsity` section once the run is built, of 600 examples and batches of 50.
Config resolved(const std::string& sparsity, int train_size = 600) {
  const auto experiment = build_experiment(parse_yaml(
      "data: {type: synthetic, features: 8, classes: 4, train_size: " + std::to_string(train_size) +
          ", test_size: 10}\n"
          "model: [{type: linear, name: fc1, out_features: 8},\n"
          "        {type: linear, name: fc2, out_features: 4}]\n"
          "optimizer: {type: sgd, lr: 0.1}\n"
          "train: {steps: 8, batch_size: 50}\n"
          "sparsity: " +
          sparsity + "\n",
      "run.yaml"));
  return experiment->config.get("sparsity");
}

TEST(CalibrationDefaults, AreWrittenForEveryMethod) {
  for (const char* method : {"magnitude", "wanda", "sparsegpt", "ADMM"}) {
    const std::string entry = std::string("{algorithm: ") + method + ", sparsity: 0.5}";
    EXPECT_EQ(resolved(entry).at("calibration").to_json(),
              R"({"examples": 512, "batch_size": 50})");
    EXPECT_EQ(resolved(entry, 70).at("calibration").to_json(),
              R"({"examples": 70, "batch_size": 50})");
  }
}

TEST(CalibrationDefaults, AreWrittenForStructuredByErrorAlone) {
  const std::string keys = "{algorithm: structured, sparsity: 0.5, criterion: ";
  EXPECT_EQ(resolved(keys + "error}").at("calibration").to_json(),
            R"({"examples": 512, "batch_size": 50})");
  EXPECT_FALSE(resolved(keys + "magnitude}").has("calibration"));
}

TEST(CalibrationDefaults, KeepWhatIsSaid) {
  EXPECT_EQ(resolved("{type: wanda, sparsity: 0.5, calibration: 40}").at("calibration").to_json(),
            R"({"examples": 40, "batch_size": 50})");
  EXPECT_EQ(resolved("{algorithm: wanda, sparsity: 0.5, calibration: {batch_size: 7}}")
                .at("calibration")
                .to_json(),
            R"({"batch_size": 7, "examples": 512})");
  EXPECT_EQ(resolved("{algorithm: wanda, sparsity: 0.5, calibration: {batches: 3}}")
                .at("calibration")
                .to_json(),
            R"({"batches": 3, "batch_size": 50})");
}

TEST(CalibrationOptions, BatchesAreCountedInExamples) {
  const auto completed = [](const std::string& text) {
    return CalibrationOptions::from_config(parse_yaml(text, "run.yaml"))
        .completed(/*there=*/600, 50);
  };
  EXPECT_EQ(completed("{batches: 3}").examples, 150);
  EXPECT_EQ(completed("{batches: 3, batch_size: 7}").examples, 21);
  EXPECT_EQ(completed("{batches: 3, batch_size: 7}").batch_size, 7);
  EXPECT_EQ(completed("{batches: 20}").examples, 1000) << "more than there are: callers refuse";
  EXPECT_EQ(completed("{}").examples, 512);
  EXPECT_EQ(completed("40").examples, 40);
  expect_throws<ConfigError>([&] { completed("{batches: 3, examples: 7}"); }, "not both");
  expect_throws<ConfigError>([&] { completed("{batches: 0}"); }, "batches");
  const CalibrationOptions of_unknown_size{.batches = 3};
  expect_throws<ConfigError>([&] { of_unknown_size.completed(600, std::nullopt); },
                             "give batch_size, too");
  EXPECT_EQ(completed("{batches: 9007199254740992, batch_size: 9007199254740992}").examples,
            9007199254740992);
}

TEST(CalibrationDefaults, AreWrittenInListsAndPhases) {
  const Config list = resolved(
      "[{algorithm: wanda, sparsity: 0.5, param_filter: fc1.weight}, {algorithm: static, sparsity: "
      "0.5, param_filter: fc2.weight}]");
  EXPECT_TRUE(list.items()[0].has("calibration"));
  EXPECT_FALSE(list.items()[1].has("calibration"));
  const Config phases =
      resolved("{phases: [{until: 4, algorithm: dense}, {algorithm: wanda, sparsity: 0.5}]}");
  EXPECT_FALSE(phases.at("phases").items()[0].has("calibration"));
  EXPECT_EQ(phases.at("phases").items()[1].at("calibration").required<int>("examples"), 512);
}

// A configuration that was resolved once is read again, and stays what it is.
TEST(CalibrationDefaults, AreReadAgain) {
  const Config once = resolved("{algorithm: wanda, sparsity: 0.5}", 70);
  EXPECT_EQ(resolved(once.to_json(), 70), once);
}

TEST(CalibrationDefaults, MistakesAreToldAsBefore) {
  expect_throws<ConfigError>([] { resolved("{algorithm: wanda, sparsity: 0.5, calibration: 0}"); },
                             "found '0'");
  expect_throws<ConfigError>(
      [] { resolved("{algorithm: wanda, sparsity: 0.5, calibration: many}"); },
      "sparsity.calibration: expected a number of examples, or a map");
  expect_throws<ConfigError>(
      [] { resolved("{algorithm: wanda, sparsity: 0.5, calibration: {example: 5}}"); }, "example");
}

TEST(CalibrationExamples, AreRefusedAtTheirKeyIfThereAreNotAsMany) {
  const auto refuses = [](const std::string& sparsity, const std::string& place, int examples) {
    expect_throws<ConfigError>([&] { resolved(sparsity); },
                               place + ": calibration needs " + std::to_string(examples) +
                                   " examples, and the training data has 600; give at most that");
  };
  const std::string wanda = "algorithm: wanda, sparsity: 0.5, calibration: ";
  refuses("{" + wanda + "601}", "run.yaml:6:58: sparsity.calibration.examples", 601);
  refuses("{" + wanda + "{batches: 13}}", ": sparsity.calibration.batches", 650);
  refuses("[{algorithm: static, sparsity: 0.5, param_filter: fc1.weight}, {" + wanda +
              "{examples: 900}, param_filter: fc2.weight}]",
          ": sparsity.1.calibration.examples", 900);
  refuses("{phases: [{until: 4, algorithm: dense}, {" + wanda + "900}]}",
          ": sparsity.phases.1.calibration.examples", 900);
  refuses("{algorithm: structured, sparsity: 0.5, criterion: error, calibration: 900}",
          ": sparsity.calibration.examples", 900);
}

TEST(CalibrationPlace, IsTheSectionWhereNoNumberIsGiven) {
  const auto place = [](const std::string& section) {
    return calibration_place(Config::map({{"s", parse_yaml(section, "run.yaml")}}).at("s")).path();
  };
  EXPECT_EQ(place("{}"), "s");
  EXPECT_EQ(place("{calibration: 5}"), "s.calibration");
  EXPECT_EQ(place("{calibration: {batch_size: 5}}"), "s.calibration");
  EXPECT_EQ(place("{calibration: {examples: 5}}"), "s.calibration.examples");
  EXPECT_EQ(place("{calibration: {examples: null, batches: 5}}"), "s.calibration.batches");
}

}  // namespace
}  // namespace lacuna::calibration_data_test
