// docs/reference/config.md and configs/: everything they show is built, and the defaults they state
// are those of the code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "docs/documents.h"
#include "framework/data/cifar_files.h"
#include "framework/data/data_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"
#include "test_data.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using documents::Block;

// The files that the documents' examples name, in a folder that becomes the current one.
class ExampleFiles {
 public:
  ExampleFiles() : before_(fs::current_path()) {
    fs::create_directory(folder_ / "data");
    fs::create_directory(folder_ / "data/mnist");
    write_mnist("train", 16);
    write_mnist("t10k", 8);
    write_cifar10(folder_ / "data/cifar/cifar-10-batches-bin");
    write_cifar100(folder_ / "data/cifar/cifar-100-binary");
    for (const char* split : {"train", "val", "test"}) write_images(split);
    const std::string table = "length,width,species\n1,2,0\n3,1,1\n2,2,2\n4,1,0\n";
    folder_.write("data/train.csv", table);
    folder_.write("data/test.csv", table);
    folder_.write("data/prices.csv", "rooms,age,price\n3,10,0.5\n5,2,0.9\n");
    write_texts();
    fs::current_path(folder_.path());
    write_arrays();
    write_weights();
  }
  ~ExampleFiles() { fs::current_path(before_); }
  ExampleFiles(const ExampleFiles&) = delete;
  ExampleFiles& operator=(const ExampleFiles&) = delete;

 private:
  void write_mnist(const std::string& split, uint32_t count) {
    folder_.write("data/mnist/" + split + "-images-idx3-ubyte",
                  testing::idx_images(count, 28, 28, std::string(count * 28 * 28, '\x20')));
    folder_.write("data/mnist/" + split + "-labels-idx1-ubyte",
                  testing::idx_labels(count, std::string(count, '\1')));
  }

  void write_images(const std::string& split) {
    for (const char* name : {"/cat", "/dog"}) {
      fs::create_directories(folder_ / ("data/images/" + split + name));
      folder_.write("data/images/" + split + name + "/1.png", plain_png(9, 7, 1, 2, 3));
    }
  }

  void write_texts() {
    std::string words;
    for (int i = 0; i < 400; ++i) words += i % 3 == 0 ? "to be or\n" : "not to be ";
    folder_.write("data/play.txt", words);
    fs::create_directory(folder_ / "data/tokens");
    for (const char* split : {"train", "val"}) {
      folder_.write(std::string("data/tokens/") + split + ".bin", std::string(2 * 1100, '\0'));
    }
    folder_.write("data/vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
    folder_.write("data/merges.txt", "a b\n");
    for (const char* split : {"train", "dev", "test"}) {
      folder_.write(std::string("data/") + split + ".txt", "0 dull\n1 a fine play\n");
    }
    folder_.write("data/reviews.csv", "stars,review\n0,dull\n1,\"a fine, fine play\"\n");
    folder_.write("data/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\n");
  }

  static void write_arrays() {
    Hdf5File file = Hdf5File::create("data/arrays.h5");
    const std::vector<int64_t> labels = {0, 2, 1};
    for (const char* split : {"train_", "test/"}) {
      file.write(std::string(split) + "inputs", Tensor::zeros(Shape{3, 2, 2}));
      file.write(std::string(split) + "targets", Shape{3}, labels);
    }
    file.close();
  }

  // For `init_from`, under the names that `rename` is shown with.
  static void write_weights() {
    fs::create_directory("weights");
    write_safetensors("weights/pretrained.safetensors",
                      {{"module.trunk.weight", Tensor::zeros({30, 784})},
                       {"module.trunk.bias", Tensor::zeros({30})},
                       {"module.fc2.weight", Tensor::zeros({1000, 30})},
                       {"module.fc2.bias", Tensor::zeros({1000})}});
  }

  TemporaryFolder folder_;
  fs::path before_;
};

Config parse(const Block& block) {
  return parse_yaml(block.text, "docs/reference/config.md line " + std::to_string(block.line));
}

// The first block, without what the other blocks' sections need not fit to.
Config base_config(const Config& schema) {
  Config base = schema.clone();
  base.get("data").set("train_size", 300);
  base.get("data").set("test_size", 50);
  base.get("data").erase("limit");
  base.get("model").erase("init_from");
  base.get("train").set("threads", 1);
  base.get("train").set("epochs", 1000);  // updates of masks must fall within the run
  return base;
}

// A checkpoint for `init_from`.
void save_first_run(const Config& base) {
  fs::create_directories("runs/first/checkpoints");
  const auto experiment = build_experiment(base.clone());
  save_model("runs/first/checkpoints/step-0000000001.h5", *experiment->model);
  std::ofstream("runs/first/config.yaml") << base.to_yaml();
}

TEST(ConfigDocument, SchemaBuilds) {
  const ExampleFiles files;
  Config schema = parse(documents::read_blocks("docs/reference/config.md", "yaml").front());
  save_first_run(base_config(schema));
  schema.get("train").set("threads", 1);
  const auto experiment = build_experiment(schema);
  EXPECT_EQ(experiment->data.train->size(), 9000);
  EXPECT_EQ(experiment->data.validation->size(), 1000);
  EXPECT_EQ(experiment->model->parameters().front()->name(), "fc1.weight");
}

TEST(ConfigDocument, EveryOtherBlockBuildsInPlaceOfTheSchemasSections) {
  const ExampleFiles files;
  const std::vector<Block> blocks = documents::read_blocks("docs/reference/config.md", "yaml");
  const Config base = base_config(parse(blocks.front()));
  ASSERT_GT(blocks.size(), 8u);
  for (size_t i = 1; i < blocks.size(); ++i) {
    Config config = base.clone();
    const Config part = parse(blocks[i]);
    for (const auto& [section, value] : part.entries()) config.set(section, value);
    if (part.has("data")) {  // small data, which has no split to judge by
      config.set("train", Config::map({{"epochs", 1}}));
      if (!part.has("loss")) config.erase("loss");
    }
    EXPECT_NO_THROW({
      try {
        build_experiment(config);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "docs/reference/config.md:" << blocks[i].line << ": " << error.what();
      }
    });
  }
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

TEST(ConfigDocument, EveryIntegerHasARange) {
  const ExampleFiles files;
  const std::vector<Block> blocks = documents::read_blocks("docs/reference/config.md", "yaml");
  const Config schema = parse(blocks.front());
  const Config base = base_config(schema);
  std::set<std::string> accepted;
  for (const Block& block : blocks) {
    const bool is_first = block.line == blocks.front().line;
    Config config = base.clone();
    std::vector<std::string> paths;
    const Config part = is_first ? base.clone() : parse(block);
    for (const auto& [section, value] : part.entries()) config.set(section, value);
    if (part.has("data") && !is_first) {
      config.set("train", Config::map({{"epochs", 1}}));
      if (!part.has("loss")) config.erase("loss");
    }
    find_integers(part, paths);
    for (const std::string& path : paths) {
      if (takes_every_integer(path)) continue;
      for (const int64_t value :
           {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
        Config extreme = config.clone();
        extreme.set_path(path, Config(value));
        try {
          build_experiment(extreme);
          accepted.insert(path + ": " + std::to_string(value));
        } catch (const Error&) {
        }
      }
    }
  }
  EXPECT_THAT(accepted, ::testing::IsEmpty());
}

// Of tokens, which the schema's model does not take: the data alone.
TEST(ConfigDocument, EveryBlockOfTokensLoads) {
  register_builtins();
  const ExampleFiles files;
  const std::vector<Block> blocks = documents::read_blocks("docs/reference/config.md", "yml");
  ASSERT_GE(blocks.size(), 5u);
  for (const Block& block : blocks) {
    const Config config = parse(block);
    EXPECT_NO_THROW({
      try {
        EXPECT_GT(load_data(config.at("data"), 0).train->vocabulary_size(), 0);
        config.require_all_read();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "docs/reference/config.md:" << block.line << ": " << error.what();
      }
    });
  }
}

std::string as_written(const Config& value) {
  if (!value.is_list()) return value.text();
  std::string text = "[";
  for (const Config& item : value.items()) text += (text == "[" ? "" : ", ") + item.text();
  return text + "]";
}

// Each key of `resolved` stands in `schema` with that value, or its line says "default <value>".
void expect_documented(const Config& resolved, const Config& schema,
                       const std::vector<std::string>& lines) {
  if (resolved.is_map()) {
    for (const auto& [key, value] : resolved.entries()) {
      ASSERT_TRUE(schema.has(key))
          << resolved.path() << "." << key << " is not in docs/reference/config.md";
      expect_documented(value, schema.get(key), lines);
    }
    return;
  }
  if (resolved == schema) return;
  const std::string& line = lines.at(static_cast<size_t>(schema.position().line) - 1);
  EXPECT_NE(line.find("default " + as_written(resolved)), std::string::npos)
      << resolved.path() << ": the default is " << as_written(resolved)
      << ", and docs/reference/config.md says: " << line;
}

// What is built from the required keys alone holds all defaults.
TEST(ConfigDocument, StatesEveryDefault) {
  const Block block = documents::read_blocks("docs/reference/config.md", "yaml").front();
  std::vector<std::string> lines;
  std::istringstream text(block.text);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  Config minimal = parse_yaml(
      "model: [flatten, {type: linear, out_features: 10}]\n"
      "optimizer: {type: adam}\n"
      "sparsity: {sparsity: 0.9}\n"
      "train: {early_stopping: {patience: 5}}\n"
      "data: {type: glyphs, validation: 0.1}\n",
      "minimal");
  minimal = build_experiment(minimal)->config;
  minimal.get("data").erase("validation");
  const Config schema = parse(block);
  for (const char* section : {"data", "optimizer", "sparsity", "train"}) {
    expect_documented(minimal.get(section), schema.get(section), lines);
  }
}

TEST(ConfigDocument, StatesEveryDefaultOfTheLayers) {
  const Block block = documents::read_blocks("docs/reference/config.md", "yaml").front();
  std::vector<std::string> lines;
  std::istringstream text(block.text);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const std::vector<Config> documented = parse(block).get("model").get("layers").items();
  const Config minimal = parse_yaml(
      "data: {type: glyphs, train_size: 8, test_size: 8}\n"
      "model: [{type: flatten}, {type: linear, out_features: 300}, {type: layer_norm},\n"
      "        {type: gelu}, {type: dropout}, {type: linear, out_features: 10}]\n"
      "optimizer: {type: adam}\n",
      "minimal");
  const Config built = build_experiment(minimal)->config;
  const std::vector<Config> resolved = built.get("model").items();
  for (size_t i = 1; i < 5; ++i) {
    Config layer = resolved[i].clone();
    layer.erase("name");
    expect_documented(layer, documented[i], lines);
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
  for (const std::string& line : documents::read_lines("docs/reference/config.md"))
    text += line + "\n";
  expect_named(layer_registry(), text);
  expect_named(optimizer_registry(), text);
  expect_named(algorithm_registry(), text);
  expect_named(schedule_registry(), text);
  expect_named(dataset_registry(), text);
}

// Every configuration that comes with the project.
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

INSTANTIATE_TEST_SUITE_P(Configs, ShippedConfig, ::testing::ValuesIn(shipped_configs()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lacuna
