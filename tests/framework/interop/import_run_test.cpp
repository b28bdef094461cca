// Runs made of files: what they hold, that every command can go on with them, and that nothing is
// left of one that could not be made.
#include "lacuna/framework/interop/import_run.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <tuple>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "paths.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::import_run_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string kResNet20 =
    std::string(kSourceFolder) + "/tests/golden/models/resnet20_cifar10.safetensors";

// A network of the known one's shape on other images, which need no files.
Config resnet20() {
  Config config = load_yaml(std::string(kSourceFolder) + "/configs/cifar10_resnet20.yaml");
  config.set("data", parse_yaml("{type: colour_glyphs, train_size: 40, test_size: 20}", "data"));
  return config;
}

TEST(ImportRun, ResNet20ComesBackBitForBit) {
  const TemporaryFolder folder;
  const ImportedRun imported = import_run(kResNet20, resnet20(), folder / "run");
  EXPECT_EQ(imported.numel, 269722);
  EXPECT_EQ(imported.nnz, 269722);
  EXPECT_EQ(listing(folder.path()), "run");
  EXPECT_EQ(imported.checkpoint, folder / "run/checkpoints/step-0000000000.h5");
  const SafetensorsFile source(kResNet20);
  for (const char* format : {"safetensors", "npz"}) {
    const std::string path = folder / (std::string("again.") + format);
    export_run(folder / "run", path, {.format = format});
    const auto again = open_array_file(path);
    ASSERT_EQ(again->arrays().size(), source.tensors().size());
    for (size_t i = 0; i < again->arrays().size(); ++i) {
      const SafetensorsEntry& entry = source.tensor(again->arrays()[i].name);
      const Tensor found = again->read(i), expected = source.read(entry);
      ASSERT_EQ(found.shape(), expected.shape()) << entry.name;
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), static_cast<size_t>(entry.bytes)), 0)
          << entry.name;
    }
  }
}

constexpr const char* kSmall = R"(
data: {type: synthetic, features: 16, classes: 4, train_size: 64, test_size: 32}
model:
  - {type: linear, name: fc1, out_features: 32}
  - relu
  - {type: linear, name: fc2, out_features: 4}
optimizer: {type: adam, lr: 0.01}
train: {steps: 6, batch_size: 16, threads: 1}
)";

// fc1.weight [32, 16] in 2:4, zeros written out; fc2.weight [4, 32] dense.
class ImportSmall : public testing::Test {
 protected:
  std::string write(bool with_mask = false) {
    std::vector<float> first, second;
    ByteArray mask{.shape = {32, 16}, .values = {}};
    for (int i = 0; i < 32 * 16; ++i) {
      const bool is_kept = (i + i / 16) % 4 < 2;
      first.push_back(is_kept ? 0.01f * static_cast<float>(i % 37 + 1) : 0.0f);
      mask.values.push_back(is_kept ? 1 : 0);
    }
    for (int i = 0; i < 4 * 32; ++i)
      second.push_back(0.02f * static_cast<float>(i % 11 - 5) + 0.003f);
    std::vector<NamedArray> arrays = {{"fc1.weight", Tensor::from({32, 16}, first)},
                                      {"fc1.bias", Tensor::zeros({32})},
                                      {"fc2.weight", Tensor::from({4, 32}, second)},
                                      {"fc2.bias", Tensor::zeros({4})}};
    if (with_mask) arrays.push_back({"fc1.weight_mask", mask});
    write_npz(folder_ / "w.npz", arrays);
    return folder_ / "w.npz";
  }
  static Config config(const std::string& more = "") {
    return parse_yaml(kSmall + more, "small.yaml");
  }
  // Trains the run in the folder to its end, as `train --resume` does.
  std::unique_ptr<Experiment> train_on(const std::string& run) {
    const RunFolder folder = RunFolder::open(run);
    auto experiment = build_experiment(load_yaml(folder.config_path()), Start::FromCheckpoint);
    Trainer trainer(*experiment, folder, ProgressStyle::Lines);
    trainer.resume(*folder.newest_good_checkpoint());
    EXPECT_EQ(trainer.run(), RunEnd::Finished);
    return experiment;
  }

  TemporaryFolder folder_;
};

TEST_F(ImportSmall, PatternsAreFoundAndTrainedOn) {
  const ImportedRun imported =
      import_run(write(), config(), folder_ / "run", {.find_pattern = true});
  EXPECT_THAT(imported.notes,
              Contains(HasSubstr("fc1.weight: 2:4 transposable, 256 of 512 are nonzeros")));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("fc2.weight: no zeros, stays dense")));
  EXPECT_EQ(imported.nnz, 256 + 32 + 128 + 4);
  const auto experiment = train_on(folder_ / "run");
  const ParameterPtr weight = experiment->model->parameter("fc1.weight");
  EXPECT_EQ(weight->pattern()->nnz(), 256);
  const std::vector<float> values = weight->to_dense().to_vector();
  for (int i = 0; i < 512; ++i) {
    if ((i + i / 16) % 4 < 2) continue;
    ASSERT_EQ(values[static_cast<size_t>(i)], 0.0f) << i;
  }
}

TEST_F(ImportSmall, AStaticSectionKeepsTheMasks) {
  for (const bool with_mask : {false, true}) {
    const std::string run = folder_ / (with_mask ? "masked" : "found");
    import_run(write(with_mask),
               config("sparsity: {algorithm: static, param_filter: fc1.weight}\n"), run,
               {.find_pattern = !with_mask});
    const std::vector<float> before =
        load_run(run).model->parameter("fc1.weight")->to_dense().to_vector();
    const auto experiment = train_on(run);
    const ParameterPtr weight = experiment->model->parameter("fc1.weight");
    EXPECT_EQ(weight->sparsified_by, "static");
    const std::vector<float> after = weight->to_dense().to_vector();
    EXPECT_NE(before, after);
    for (size_t i = 0; i < 512; ++i) {
      if ((i + i / 16) % 4 < 2) continue;
      ASSERT_EQ(after[i], 0.0f) << i;
    }
  }
}

TEST_F(ImportSmall, OtherRunsBeginFromIt) {
  for (const char* name : {"run", "run.npz", "run.pt"}) {  // a folder is no file of that kind
    import_run(write(true), config(), folder_ / name);
    Config next = config();
    next.set("model",
             Config::map({{"init_from", folder_ / name}, {"layers", next.at("model").clone()}}));
    const auto experiment = build_experiment(next);
    EXPECT_EQ(experiment->model->parameter("fc1.weight")->pattern()->nnz(), 256) << name;
  }
}

TEST_F(ImportSmall, RenamesOfTheConfigurationAreFollowed) {
  write_npz(folder_ / "w.npz",
            {{"net.fc1.weight", Tensor::full({32, 16}, 1)}, {"net.fc1.bias", Tensor::zeros({32})}});
  Config wanted = config();
  wanted.set("model", parse_yaml("{init_from: {path: elsewhere.npz, rename: [{from: 'net.*', to: "
                                 "'*'}], skip: 'fc2.*'}, layers: " +
                                     wanted.at("model").to_json() + "}",
                                 "model"));
  import_run(folder_ / "w.npz", wanted, folder_ / "run");
  EXPECT_EQ(load_run(folder_ / "run").model->parameter("fc1.weight")->to_dense().data()[3], 1.0f);
  EXPECT_EQ(wanted.at("model").at("init_from").at("path").text(), "elsewhere.npz");
}

// The file is at fault, wherever the configuration says what else is done with it.
TEST_F(ImportSmall, ErrorsAreSaidOfTheFileAndNotOfTheConfiguration) {
  Config wanted = config();
  wanted.set("model", parse_yaml("{init_from: {path: elsewhere.npz, rename: [{from: 'net.*', to: "
                                 "'*'}]}, layers: " +
                                     wanted.at("model").to_json() + "}",
                                 "small.yaml"));
  for (const auto& [name, bytes, words] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"gone.npz", "", "cannot read '"},
           {"bad.npz", "not an archive", "is not a valid npz file"},
           {"net.pt", "\x80\x02.", "is a pickle by its name"},
           {"notes.txt", "hello", "weights of other tools end in .safetensors, .npz or .npy"}}) {
    const std::string file = folder_ / name;
    if (!bytes.empty()) folder_.write(name, bytes);
    for (const bool find_pattern : {false, true}) {
      expect_throws<CheckpointError>(
          [&] { import_run(file, wanted, folder_ / "run", {.find_pattern = find_pattern}); },
          "import " + file + ": ");
      expect_throws<CheckpointError>(
          [&] { import_run(file, wanted, folder_ / "run", {.find_pattern = find_pattern}); },
          words);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  }
}

TEST_F(ImportSmall, NothingIsLeftOfWhatCannotBe) {
  write_npz(folder_ / "w.npz", {{"fc1.weight", Tensor::zeros({3, 3})}});
  expect_throws<CheckpointError>([&] { import_run(folder_ / "w.npz", config(), folder_ / "run"); },
                                 "belong to a different model");
  EXPECT_EQ(listing(folder_.path()), "w.npz");
  import_run(write(), config(), folder_ / "run");
  expect_throws<StateError>([&] { import_run(folder_ / "w.npz", config(), folder_ / "run"); },
                            "holds a run already");
  folder_.write("file", "");
  expect_throws<StateError>([&] { import_run(folder_ / "w.npz", config(), folder_ / "file"); },
                            "is a file");
  EXPECT_EQ(listing(folder_.path()), "file run w.npz");
}

}  // namespace
}  // namespace lacuna::import_run_test
