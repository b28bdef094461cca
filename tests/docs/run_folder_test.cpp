// docs/reference/run-folder.md names every key that a run writes, and no file that it does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "docs/documents.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "temporary_folder.h"

namespace lacuna::run_folder_test {
namespace {

// What stands in backquotes in the document.
std::set<std::string> documented_words() {
  std::set<std::string> words;
  for (const std::string& line : documents::read_lines("docs/reference/run-folder.md")) {
    for (size_t begin = line.find('`'); begin != std::string::npos;) {
      const size_t end = line.find('`', begin + 1);
      if (end == std::string::npos) break;
      words.insert(line.substr(begin + 1, end - begin - 1));
      begin = line.find('`', end + 1);
    }
  }
  return words;
}

void expect_documented(const Config& event, const std::set<std::string>& words) {
  for (const auto& [key, value] : event.entries()) {
    EXPECT_TRUE(words.contains(key)) << key << " is not in docs/reference/run-folder.md";
    if (!value.is_map()) continue;
    for (const auto& [parameter, entry] : value.entries()) expect_documented(entry, words);
  }
}

TEST(RunFolderDocument, NamesEveryKeyOfMetricsAndSummary) {
  const TemporaryFolder folder;
  const Config config = parse_yaml(
      "data: {type: glyphs, train_size: 200, test_size: 50, validation: 0.2}\n"
      "model: [flatten, {type: linear, out_features: 10}]\n"
      "optimizer: {type: adam}\n"
      "sparsity: {algorithm: set, sparsity: 0.5, update: {freq: 2}, param_filter: default}\n"
      "train: {epochs: 2, batch_size: 40, log_every: 2, threads: 1}\n",
      "run.yaml");
  const auto experiment = build_experiment(config);
  const RunFolder run = RunFolder::create(folder / "run", config.to_yaml());
  Trainer trainer(*experiment, run, ProgressStyle::Lines);
  ASSERT_EQ(trainer.run(), RunEnd::Finished);

  const std::set<std::string> words = documented_words();
  std::set<std::string> splits;
  std::ifstream metrics(run.metrics_path());
  for (std::string line; std::getline(metrics, line);) {
    const Config event = parse_yaml(line, "metrics.jsonl");  // JSON is YAML
    splits.insert(event.required<std::string>("split"));
    expect_documented(event, words);
  }
  EXPECT_EQ(splits, (std::set<std::string>{"test", "train", "update", "validation"}));
  expect_documented(load_yaml(run.summary_path()), words);
}

// Outputs of other commands do not replace them.
TEST(RunFolderDocument, NamesFilesThatOutputsMayNotReplace) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::filesystem::create_directories(run + "/checkpoints");
  std::ofstream(run + "/config.yaml") << "{}";
  std::set<std::string> files;
  for (const std::string& line : documents::read_lines("docs/reference/run-folder.md")) {
    if (line.starts_with("## ")) break;
    if (!line.starts_with("  ")) continue;
    // The first word of the line, and names in the words after it.
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      while (word.ends_with(',') || word.ends_with('.')) word.pop_back();
      const std::string end = std::filesystem::path(word).extension().string();
      if (end == ".json" || end == ".jsonl" || end == ".h5" || end == ".yaml" || end == ".txt") {
        files.insert(word);
      }
    }
  }
  EXPECT_GE(files.size(), 14u);
  for (const std::string& file : files) {
    EXPECT_THROW(require_no_file_of_a_run("--out", run + "/" + file), ConfigError) << file;
  }
  EXPECT_NO_THROW(require_no_file_of_a_run("--out", run + "/predictions.csv"));
}

}  // namespace
}  // namespace lacuna::run_folder_test
