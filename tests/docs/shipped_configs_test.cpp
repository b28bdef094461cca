// Every configuration that comes with the project builds, and says how to run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "docs/documents.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "test_data.h"

namespace lacuna::shipped_configs_test {
namespace {

namespace fs = std::filesystem;

class ShippedConfig : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedConfig, Builds) {
  Config config = load_yaml(documents::source_path("configs/" + GetParam() + ".yaml"));
  if (config.get("data").get("type").text() == "cifar10") {
    const std::optional<std::string> folder = data_folder("cifar-10-batches-bin");
    if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with cifar-10-batches-bin/";
    config.set_path("data.dir", *folder);
  }
  if (config.get("data").get("type").text() == "mnist") {
    const std::optional<std::string> folder = mnist_folder();
    if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with mnist/";
    config.set_path("data.dir", *folder);
  }
  const std::string type = config.get("data").get("type").text();
  if (type == "text" || type == "labelled_text") {
    const std::optional<std::string> folder = data_folder("text");
    if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with text/";
    for (const char* key : {"path", "train", "validation", "test"}) {
      const std::string path = config.get("data").get(key).text();
      if (!path.starts_with("data/text/")) continue;  // a number, or not there
      config.set_path(std::string("data.") + key, *folder + path.substr(9));
    }
  }
  EXPECT_GT(build_experiment(config)->nnz(), 0);
}

TEST_P(ShippedConfig, SaysHowToRunItAndWhatToExpect) {
  const std::vector<std::string> lines = documents::read_lines("configs/" + GetParam() + ".yaml");
  std::string header;
  for (const std::string& line : lines) {
    if (!line.starts_with("#")) break;
    header += line + "\n";
  }
  EXPECT_THAT(header, ::testing::HasSubstr("lacuna train configs/" + GetParam() + ".yaml"));
  EXPECT_THAT(header, ::testing::HasSubstr("\n# Expect "));
}

std::vector<std::string> shipped_configs() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(documents::source_path("configs"))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(ShippedConfigs, SayWhatToExpectInEveryFolder) {
  for (const auto& entry : fs::recursive_directory_iterator(documents::source_path("configs"))) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream in(entry.path());
    std::string header, line;
    while (std::getline(in, line) && line.starts_with("#")) header += line + "\n";
    EXPECT_THAT(header, ::testing::ContainsRegex("[#.] Expect ")) << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, ShippedConfig, ::testing::ValuesIn(shipped_configs()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lacuna::shipped_configs_test
