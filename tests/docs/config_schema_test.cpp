// docs/reference/config.md: its blocks and the examples of its tables build, and the defaults that
// it states are those of the program. The YAML of the guides builds too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "docs/documents.h"
#include "docs/example_files.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"
#include "temporary_folder.h"

namespace lacuna::config_schema_test {
namespace {

namespace fs = std::filesystem;
using documents::Block;
using documents::ExampleFiles;

const char* const kPage = "docs/reference/config.md";

// A row of a table of keys, with the block of YAML above it in the same section: what its example
// is set in. Without a block: the page's first one.
struct KeyRow {
  std::string key;
  std::vector<std::string> defaults;  // what is in backquotes in that cell
  std::string example;                // empty: none
  int line = 0;
  Block block;
};

// The words in backquotes.
std::vector<std::string> code_words(const std::string& cell) {
  std::vector<std::string> words;
  for (size_t begin = cell.find('`'); begin != std::string::npos;) {
    const size_t end = cell.find('`', begin + 1);
    if (end == std::string::npos) break;
    words.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = cell.find('`', end + 1);
  }
  return words;
}

std::vector<KeyRow> key_rows() {
  std::vector<Block> blocks = documents::read_blocks(kPage, "yaml");
  const std::vector<Block> of_data = documents::read_blocks(kPage, "yml");
  blocks.insert(blocks.end(), of_data.begin(), of_data.end());
  std::vector<KeyRow> rows;
  Block block;
  bool is_table = false;
  int number = 0;
  for (const std::string& line : documents::read_lines(kPage)) {
    ++number;
    if (line.starts_with("## ")) block = {};
    for (const Block& other : blocks) {
      if (other.line == number) block = other;
    }
    if (!line.starts_with("|")) is_table = false;
    if (line == "| key | type | default | example | meaning |") is_table = true;
    if (!is_table || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, '|');) cells.push_back(cell);
    if (cells.size() != 6) throw std::runtime_error("not five cells: " + line);
    const std::vector<std::string> example = code_words(cells[4]);
    rows.push_back({code_words(cells[1]).at(0), code_words(cells[3]),
                    example.empty() ? "" : example[0], number, block});
  }
  return rows;
}

Config base_config() {
  Config base = parse_yaml(documents::read_blocks(kPage, "yaml").front().text, kPage);
  base.get("data").set("train_size", 300);
  base.get("data").set("test_size", 50);
  base.get("train").set("threads", 1);
  base.get("train").set("epochs", 2000);  // updates of masks must fall within the run
  return base;
}

// A block alone, which may be data that the first block's model does not take: `yml`.
struct Part {
  Config config;
  bool is_data_alone = false;
};

// A block's sections in place of those of the first block.
Part part_of(const Block& block, const std::string& page) {
  const auto data = documents::read_blocks(page, "yml");
  const bool is_data_alone = std::ranges::find(data, block.line, &Block::line) != data.end();
  const Config part =
      parse_yaml(block.text.empty() ? "{}" : block.text, page + ":" + std::to_string(block.line));
  if (is_data_alone) return {part, true};
  Config config = base_config();
  if (part.has("quantize") && page.ends_with("quantization.md")) {  // which needs an inner layer
    config.set(
        "model",
        parse_yaml("model: [flatten, {type: linear, name: fc1, out_features: 16}, layer_norm, "
                   "{type: linear, out_features: 16}, relu, "
                   "{type: linear, out_features: 10}]",
                   "inner")
            .at("model"));
    config.set_path("data.train_size", Config(1000));
  }
  for (const auto& [section, value] : part.entries()) config.set(section, value);
  if (part.has("data") && !part.has("train")) config.set_path("train.epochs", Config(1000));
  return {config, false};
}

// Builds, or loads data alone, and gives the resolved configuration.
Config build(const Part& part) {
  if (!part.is_data_alone) return build_experiment(part.config)->config;
  EXPECT_GT(load_data(part.config.at("data"), 0).train->size(), 0);
  part.config.require_all_read();
  return part.config;
}

void expect_builds(const Part& part, const std::string& where) {
  try {
    build(part);
  } catch (const std::exception& error) {
    ADD_FAILURE() << where << ": " << error.what();
  }
}

// A run of one step, for `init_from` and the teacher.
void save_run(const std::string& folder) {
  Config config = base_config();
  config.set("sparsity", Config(0.5));
  config.set("train", Config::map({{"steps", 1}, {"threads", 1}}));
  const auto experiment = build_experiment(config);
  const RunFolder run = RunFolder::create(folder, experiment->config.to_yaml());
  ASSERT_EQ(Trainer(*experiment, run, ProgressStyle::Lines).run(), RunEnd::Finished);
}

TEST(ConfigDocument, EveryBlockBuilds) {
  register_builtins();
  const ExampleFiles files;
  for (const char* run : {"runs/first", "runs/half"}) save_run(run);
  int count = 0;
  for (const std::string page :
       {"reference/config", "guides/data", "guides/models", "guides/sparsity", "guides/training",
        "guides/pruning", "guides/quantization", "guides/widths"}) {
    const std::string path = "docs/" + page + ".md";
    for (const char* language : {"yaml", "yml"}) {
      for (const Block& block : documents::read_blocks(path, language)) {
        expect_builds(part_of(block, path), path + ":" + std::to_string(block.line));
        ++count;
      }
    }
  }
  EXPECT_GT(count, 60);
}

TEST(ConfigDocument, EveryExampleOfAKeyBuilds) {
  register_builtins();
  const ExampleFiles files;
  save_run("runs/first");
  int count = 0;
  for (const KeyRow& row : key_rows()) {
    if (row.example.empty()) continue;
    const std::string where = kPage + (":" + std::to_string(row.line) + ": " + row.key);
    Part part = part_of(row.block, kPage);
    part.config.set_path(row.key, parse_yaml("value: " + row.example, where).at("value"));
    expect_builds(part, where);
    ++count;
  }
  EXPECT_GT(count, 120);
}

class EmptyCurrentFolder {
 public:
  EmptyCurrentFolder() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~EmptyCurrentFolder() { fs::current_path(before_); }
  EmptyCurrentFolder(const EmptyCurrentFolder&) = delete;
  EmptyCurrentFolder& operator=(const EmptyCurrentFolder&) = delete;

 private:
  fs::path before_;
  ::lacuna::TemporaryFolder folder_;
};

// Without the files that it names, the error is theirs: no key of a table is unknown then.
TEST(ConfigDocument, EveryKeyOfDataIsKnownWhereFilesAreMissing) {
  register_builtins();
  const EmptyCurrentFolder without_files;
  int missing = 0;
  for (const KeyRow& row : key_rows()) {
    if (row.example.empty() || !row.key.starts_with("data.")) continue;
    const Config data = part_of(row.block, kPage).config.at("data");
    std::vector<std::string> types{data.at("type").text()};
    if (types[0] == "hdf5" && row.key != "data.follow_links") types.push_back("npz");  // one table
    for (const std::string& type : types) {
      Config section = Config::map({{"data", data.clone()}});
      section.set_path(row.key, parse_yaml("value: " + row.example, kPage).at("value"));
      section.set_path("data.type", Config(type));
      try {
        load_data(section.at("data"), 0);
        continue;
      } catch (const Error&) {
        ++missing;
      }
      EXPECT_NO_THROW(require_known_data_keys(section.at("data"))) << type << ": " << row.key;
    }
  }
  EXPECT_GT(missing, 60);
}

// The dotted paths of all integers below.
void find_integers(const Config& node, std::vector<std::string>& paths) {
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries()) find_integers(value, paths);
  } else if (node.is_list()) {
    for (const Config& item : node.items()) find_integers(item, paths);
  } else if (node.is_number() && node.text().find_first_not_of("0123456789") == std::string::npos) {
    paths.push_back(node.path());
  }
}

// What a 64-bit integer may be: a seed, a period, which ends with the run at the latest, and real
// numbers, which are rounded.
bool takes_every_integer(const std::string& path) {
  if (path.find(".class_weights.") != std::string::npos || path.ends_with(".half_period")) {
    return true;
  }
  const std::string key = path.substr(path.rfind('.') + 1);
  return key == "seed" || key == "every" || key == "eval_every" || key == "log_every";
}

// Sets a key to the ends of the range of integers. *Returns* those that are accepted.
std::set<std::string> accepted_extremes(const Part& part, const std::string& path) {
  std::set<std::string> accepted;
  if (takes_every_integer(path)) return accepted;
  for (const int64_t value :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    Part extreme = {part.config.clone(), part.is_data_alone};
    extreme.config.set_path(path, Config(value));
    try {
      build(extreme);
      accepted.insert(path + ": " + std::to_string(value));
    } catch (const Error&) {
    }
  }
  return accepted;
}

TEST(ConfigDocument, EveryIntegerHasARange) {
  register_builtins();
  const ExampleFiles files;
  save_run("runs/first");
  std::set<std::string> accepted;
  for (const char* language : {"yaml", "yml"}) {
    for (const Block& block : documents::read_blocks(kPage, language)) {
      const Part part = part_of(block, kPage);
      std::vector<std::string> paths;
      find_integers(parse_yaml(block.text, kPage), paths);
      for (const std::string& path : paths) accepted.merge(accepted_extremes(part, path));
    }
  }
  for (const KeyRow& row : key_rows()) {
    if (row.example.empty()) continue;
    const Config example = parse_yaml("value: " + row.example, kPage).at("value");
    const Part part = part_of(row.block, kPage);
    std::vector<std::string> paths;
    find_integers(example, paths);
    const bool is_integer = example.is_scalar() && paths.size() == 1;
    if (is_integer) accepted.merge(accepted_extremes(part, row.key));
  }
  EXPECT_THAT(accepted, ::testing::IsEmpty());
}

std::string as_written(const Config& value) {
  if (!value.is_list()) return value.text();
  std::string text = "[";
  for (const Config& item : value.items()) text += (text == "[" ? "" : ", ") + item.text();
  return text + "]";
}

// Each key of `resolved` that `given` lacks has a row with that default.
void expect_documented(const Config& resolved, const Config& given, const std::string& path,
                       const std::vector<KeyRow>& rows, const std::string& where) {
  if (resolved.is_map()) {
    for (const auto& [key, value] : resolved.entries()) {
      expect_documented(value, given.is_map() ? given.get(key) : Config(),
                        path.empty() ? key : path + "." + key, rows, where);
    }
    return;
  }
  if (!given.is_null() || resolved.is_null()) return;
  const bool is_stated = std::ranges::any_of(rows, [&](const KeyRow& row) {
    return row.key == path && std::ranges::count(row.defaults, as_written(resolved)) > 0;
  });
  EXPECT_TRUE(is_stated) << where << ": no table states that the default of " << path << " is "
                         << as_written(resolved);
}

TEST(ConfigDocument, StatesEveryDefault) {
  register_builtins();
  const ExampleFiles files;
  save_run("runs/first");
  const std::vector<KeyRow> rows = key_rows();
  for (const char* language : {"yaml", "yml"}) {
    for (const Block& block : documents::read_blocks(kPage, language)) {
      const Part part = part_of(block, kPage);
      const Config given = part.config.clone();
      const Config resolved = build(part);
      for (const char* section : {"data", "loss", "optimizer", "sparsity", "train"}) {
        const Config part_of_it = resolved.get(section);
        if (!part_of_it.is_map() || part_of_it.has("phases")) continue;
        expect_documented(part_of_it, given.get(section), section, rows,
                          kPage + (":" + std::to_string(block.line)));
      }
    }
  }
}

// A layer's row has each key that it takes when it is given none, with its default in parentheses.
TEST(ConfigDocument, StatesEveryDefaultOfTheLayers) {
  register_builtins();
  std::vector<std::string> rows;
  for (const std::string& line : documents::read_lines(kPage)) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  const Config config = parse_yaml(
      "data: {type: colour_glyphs, train_size: 8, test_size: 8}\n"
      "model: [{type: conv2d, out_channels: 8, kernel: 3}, {type: batch_norm}, {type: group_norm,\n"
      "        groups: 2}, {type: leaky_relu}, {type: max_pool, kernel: 2}, {type: avg_pool,\n"
      "        kernel: 2}, {type: patch_embedding, patch: 1, features: 8}, {type: class_token},\n"
      "        {type: position_embedding}, {type: qkv, names: [q, k, v]}, {type: attention,\n"
      "        heads: 2}, {type: layer_norm}, {type: rms_norm}, {type: gelu}, {type: dropout},\n"
      "        {type: semi_sparse_activation}, {type: select_token},\n"
      "        {type: linear, out_features: 10}]\n"
      "optimizer: {type: adam}\n",
      "layers");
  const std::vector<Config> given = config.clone().get("model").items();
  const Config built = build_experiment(config)->config;
  const std::vector<Config> resolved = built.get("model").items();
  ASSERT_EQ(given.size(), resolved.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string type = given[i].get("type").text();
    const auto row = std::ranges::find_if(
        rows, [&](const std::string& line) { return line.starts_with("| `" + type + "` |"); });
    ASSERT_NE(row, rows.end()) << type;
    for (const auto& [key, value] : resolved[i].entries()) {
      if (key == "name" || given[i].has(key)) continue;
      EXPECT_THAT(*row, ::testing::HasSubstr("`" + key + "`")) << type;
      const bool is_fixed = value.is_bool() || (value.is_number() && key != "features");
      const size_t at = row->find("`" + key + "` (");
      if (!is_fixed || at == std::string::npos) continue;
      const std::string stated = row->substr(at + key.size() + 4);
      if (std::isalpha(stated[0]) && !value.is_bool()) continue;  // in words
      const Config number = Config::plain(stated.substr(0, stated.find_first_of(");")));
      const bool is_same = value.is_bool() ? number.as<bool>() == value.as<bool>()
                                           : number.as<double>() == value.as<double>();
      EXPECT_TRUE(is_same) << type << "." << key << " is " << value.text();
    }
  }
}

template <class Registry>
void expect_named(const Registry& registry, const std::string& text) {
  for (const std::string& name : registry.names()) {
    const bool is_named = text.find("`" + name + "`") != std::string::npos ||
                          text.find("type: " + name) != std::string::npos ||
                          text.find("- " + name) != std::string::npos ||
                          text.find("| " + name) != std::string::npos;
    EXPECT_TRUE(is_named) << name << " is not in docs/reference/config.md";
  }
}

TEST(ConfigDocument, NamesEverythingThatIsRegistered) {
  register_builtins();
  std::string text;
  for (const std::string& line : documents::read_lines(kPage)) text += line + "\n";
  expect_named(layer_registry(), text);
  expect_named(optimizer_registry(), text);
  expect_named(algorithm_registry(), text);
  expect_named(schedule_registry(), text);
  expect_named(dataset_registry(), text);
}

}  // namespace
}  // namespace lacuna::config_schema_test
