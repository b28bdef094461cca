// Weights of other tools with their masks: cstorch's and torch.nn.utils.prune's names, npz and npy,
// patterns found from zeros. Pickles: pickles_test.cpp.
#include <gmock/gmock.h>

#include "framework/io/storage/npz_bytes.h"
#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/layers/linear.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// fc.weight [4, 8], fc.bias [4].
class ImportedWeights : public testing::Test {
 protected:
  ImportedWeights() {
    model_.add<Linear>("fc", {.in_features = 8, .out_features = 4});
    model_.initialize(1);
  }
  static Tensor counted(int64_t rows = 4) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows * 8; ++i) values.push_back(static_cast<float>(i + 1));
    return Tensor::from({rows, 8}, values);
  }
  static ByteArray every_third() {
    ByteArray mask{.shape = {4, 8}, .values = {}};
    for (int i = 0; i < 32; ++i) mask.values.push_back(i % 3 == 0 ? 1 : 0);
    return mask;
  }
  static Tensor bias() { return Tensor::from({4}, std::vector<float>{1, 2, 3, 4}); }
  std::string npz(const std::vector<NamedArray>& arrays) {
    write_npz(folder_ / "w.npz", arrays);
    return folder_ / "w.npz";
  }
  std::string safetensors(const std::vector<NamedArray>& arrays) {
    write_safetensors_arrays(folder_ / "w.safetensors", arrays);
    return folder_ / "w.safetensors";
  }
  void expect_masked() {
    const ParameterPtr weight = model_.parameter("fc.weight");
    EXPECT_EQ(weight->mask(), every_third());
    const std::vector<float> values = weight->to_dense().to_vector();
    EXPECT_EQ(values[3], 4.0f);
    EXPECT_EQ(values[4], 0.0f);  // outside of the mask, whatever the file has there
    EXPECT_TRUE(model_.parameter("fc.bias")->pattern()->is_dense());
  }

  TemporaryFolder folder_;
  Sequential model_;
};

TEST_F(ImportedWeights, MasksBesideWeightsAreTheirs) {
  const std::vector<NamedArray> arrays = {
      {"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}};
  for (const std::string& path : {npz(arrays), safetensors(arrays)}) {
    model_.initialize(1);
    const LoadedWeights loaded = load_weights(path, model_);
    expect_masked();
    EXPECT_THAT(loaded.masked, ElementsAre("fc.weight"));
    EXPECT_THAT(loaded.notes, Contains(HasSubstr("fc.weight: unstructured, 11 of 32 are nonzeros "
                                                 "(by the file's mask)")));
  }
}

TEST_F(ImportedWeights, MasksFollowTheirWeightsUnderOtherNames) {
  load_weights(safetensors({{"module.fc.weight", counted()},
                            {"module.fc.weight_mask", every_third()},
                            {"module.fc.bias", bias()}}),
               model_, {.rename = {{"module.*.weight", "*.weight"}, {"module.*", "*"}}});
  expect_masked();
}

TEST_F(ImportedWeights, TorchsPrunedNamesAreKnown) {
  load_weights(
      safetensors(
          {{"fc.weight_orig", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}}),
      model_);
  expect_masked();
}

// [[0, 2, …], [], [], [7 at column 3]] and what is no such matrix.
TEST_F(ImportedWeights, ScipysMatricesHaveTheirPositionsForAMask) {
  const auto csr = [&](std::vector<int32_t> indices, std::vector<int64_t> indptr,
                       std::vector<int64_t> shape = {4, 8}) {
    return npz({{"fc.weight.data", Tensor::from({2}, std::vector<float>{2, 7})},
                {"fc.weight.indices", std::move(indices)},
                {"fc.weight.indptr", std::move(indptr)},
                {"fc.weight.shape", std::move(shape)},
                {"fc.bias", bias()}});
  };
  load_weights(csr({1, 3}, {0, 1, 1, 1, 2}), model_);
  const ParameterPtr weight = model_.parameter("fc.weight");
  EXPECT_EQ(weight->pattern()->nnz(), 2);
  EXPECT_EQ(weight->to_dense().data()[1], 2.0f);
  EXPECT_EQ(weight->to_dense().data()[27], 7.0f);
  const auto refused = [&](const std::string& path, const std::string& words) {
    expect_throws<CheckpointError>([&] { load_weights(path, model_); }, words);
  };
  refused(csr({1, 8}, {0, 1, 1, 1, 2}), "are no csr matrix");
  refused(csr({3, 1}, {0, 2, 2, 2, 2}), "sum_duplicates()");
  refused(csr({1, -1}, {0, 1, 1, 1, 2}), "an index is no column");
  refused(csr({1, 3, 5}, {0, 1, 1, 1, 3}), "2 values for 3 indices");
  refused(csr({1, 3}, {0, 1, 1, 2}), "are no csr matrix");
  refused(csr({1, 3}, {0, 1, 1, 1, 2}, {4, -8}), "'fc.weight.shape'");
  refused(csr({1, 3}, {0, 1, 1, 1, 2}, {1 << 30, 1 << 30}), "'fc.weight' is [4, 8] in the model");
}

TEST_F(ImportedWeights, AFullMaskIsNone) {
  const ByteArray full{.shape = {4, 8}, .values = std::vector<uint8_t>(32, 1)};
  load_weights(npz({{"fc.weight", counted()}, {"fc.weight_mask", full}, {"fc.bias", bias()}}),
               model_);
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
}

TEST_F(ImportedWeights, AMaskCanBeSkipped) {
  load_weights(
      npz({{"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}}),
      model_, {.skip = {"*_mask"}});
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
}

TEST_F(ImportedWeights, MasksThatCannotBeAreRefused) {
  const auto refused = [&](const std::vector<NamedArray>& arrays, const std::string& words) {
    expect_throws<CheckpointError>([&] { load_weights(npz(arrays), model_); }, words);
  };
  refused({{"fc.weight", counted()},
           {"fc.weight_mask", ByteArray{.shape = {32}, .values = std::vector<uint8_t>(32)}},
           {"fc.bias", bias()}},
          "the mask 'fc.weight_mask'");
  refused({{"fc.weight", counted()}, {"fc.weight_mask", counted()}, {"fc.bias", bias()}},
          "another value than 0 and 1 (its element 1,");
  refused({{"fc.weight", counted()}, {"fc.bias", bias()}, {"other_mask", every_third()}},
          "'other_mask' [4, 8] is in the file only");
}

TEST_F(ImportedWeights, SlashesAreDots) {
  load_weights(npz({{"fc/weight", counted()}, {"fc/bias", bias()}}), model_);
  EXPECT_EQ(model_.parameter("fc.weight")->to_dense().to_vector(), counted().to_vector());
  expect_throws<CheckpointError>(
      [&] {
        load_weights(npz({{"fc/bias", bias()}, {"fc.bias", bias()}}), model_);
      },
      "would both be 'fc.bias'; rename one of them there");
}

TEST_F(ImportedWeights, AnArrayOfItsOwnIsNamedAsItsFile) {
  write_npz(folder_ / "one.npz", {{"fc.bias", bias()}});
  const std::string bytes = read_text(folder_ / "one.npz");
  const size_t begin = bytes.find("\x93NUMPY");
  folder_.write("fc.bias.npy", bytes.substr(begin, 128 + 16));
  load_weights(folder_ / "fc.bias.npy", model_, {.skip = {"fc.weight"}});
  EXPECT_THAT(model_.parameter("fc.bias")->to_dense().to_vector(), ElementsAre(1, 2, 3, 4));
}

TEST_F(ImportedWeights, ConversionsAreSaid) {
  std::vector<std::byte> half(64);
  const std::string header =
      R"({"fc.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},"fc.bias":{"dtype":"F64","shape":[4],"data_offsets":[64,96]}})";
  const auto length = static_cast<uint64_t>(header.size());
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  const std::string path = folder_.write("w.safetensors", bytes + header + std::string(96, '\0'));
  const LoadedWeights loaded = load_weights(path, model_);
  EXPECT_THAT(loaded.notes,
              Contains(HasSubstr("converted to F32, 1 from BF16 (fc.weight), 1 from F64 (fc.bias); "
                                 "those from F64 are rounded")));
}

TEST_F(ImportedWeights, PatternsAreFoundFromZerosWhenAsked) {
  std::vector<float> values = counted().to_vector();
  for (size_t i = 0; i < values.size(); ++i) {
    if ((i + i / 8) % 4 < 2) values[i] = 0.0f;  // two of four, other ones in each row
  }
  const std::string path =
      safetensors({{"fc.weight", Tensor::from({4, 8}, values)}, {"fc.bias", bias()}});
  load_weights(path, model_);
  EXPECT_TRUE(model_.parameter("fc.weight")->pattern()->is_dense());
  const LoadedWeights loaded = load_weights(path, model_, {.find_pattern = true});
  const ParameterPtr weight = model_.parameter("fc.weight");
  EXPECT_TRUE(weight->pattern()->layout().name().starts_with("nm 2:4"));
  EXPECT_EQ(weight->pattern()->nnz(), 16);
  EXPECT_EQ(weight->to_dense().to_vector(), values);
  EXPECT_THAT(loaded.notes, Contains(HasSubstr("fc.weight: 2:4")));
}

TEST_F(ImportedWeights, AllDifferencesAreNamedWithTheNearest) {
  try {
    load_weights(npz({{"fc.weigth", counted()}, {"fc.bais", bias()}}), model_);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'fc.weight' [4, 8] is in the model only"));
    EXPECT_THAT(error.what(), HasSubstr("; 'fc.weight' is nearest to the file's 'fc.weigth', "
                                        "'fc.bias' is nearest to the file's 'fc.bais'"));
    EXPECT_THAT(error.what(), HasSubstr("'fc.bais' [4] is in the file only"));
  }
}

// 'fc.weight' is one letter from 'fs.weight', which could not take its place.
TEST_F(ImportedWeights, TheNearestIsOfTheSameShapeWhereThereIsOne) {
  const std::string path =
      npz({{"fs.weight", bias()}, {"fc.wieght", counted()}, {"fc.bais", counted()}});
  expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                 "'fc.weight' is nearest to the file's 'fc.wieght', 'fc.bias' is "
                                 "nearest to the file's 'fc.bais'");
}

// Names of a file go to no terminal as they are.
TEST_F(ImportedWeights, ControlCharactersOfNamesAreSpelledOut) {
  try {
    load_weights(npz({{"fc.weight", counted()}, {"fc.\x1b[31mred", bias()}}), model_);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'fc.\\x1b[31mred' [4] is in the file only"));
  }
}

// Whatever is done to a file, it is loaded whole or refused by name, and then nothing has changed.
TEST_F(ImportedWeights, DamagedFilesAreRefusedAndChangeNothing) {
  const std::vector<NamedArray> arrays = {
      {"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}};
  for (const std::string& path : {npz(arrays), safetensors(arrays)}) {
    const std::string good = read_text(path);
    const CounterRng rng(3, path.substr(path.size() - 3));
    uint64_t draw = 0;
    const auto below = [&](size_t bound) { return static_cast<size_t>(rng.bits(draw++) % bound); };
    int refused = 0;
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      if (round % 4 == 0) bad.resize(below(bad.size()));
      for (size_t change = 0; change < 1 + below(3) && !bad.empty(); ++change) {
        char& byte = bad[below(bad.size())];
        byte = static_cast<char>(round % 3 == 0 ? 0xff : byte ^ (1 << below(8)));
      }
      write_text(path, bad);
      model_.initialize(1);
      const std::vector<float> before = model_.parameter("fc.bias")->to_dense().to_vector();
      try {
        load_weights(path, model_);
      } catch (const CheckpointError& error) {
        ++refused;
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
        EXPECT_EQ(model_.parameter("fc.bias")->to_dense().to_vector(), before);
      }
    }
    EXPECT_GT(refused, 150) << path;
  }
}

// Which is rarely meant so: a mask the other way round, a file that was never filled.
TEST_F(ImportedWeights, NothingButZerosIsToldByName) {
  const Tensor zeros = Tensor::zeros({4, 8});
  std::string path =
      npz({{"fc.weight", counted()}, {"fc.weight_mask", zeros}, {"fc.bias", bias()}});
  EXPECT_THAT(load_weights(path, model_).warnings,
              ElementsAre("'" + path +
                          "': a mask of nothing but zeros, so that no weight is left "
                          "there: fc.weight; in a mask 1 is what stays"));
  EXPECT_EQ(model_.parameter("fc.weight")->pattern()->nnz(), 0);
  for (const bool find_pattern : {false, true}) {
    path = safetensors({{"fc.weight", zeros}, {"fc.bias", Tensor::zeros({4})}});
    EXPECT_THAT(load_weights(path, model_, {.find_pattern = find_pattern}).warnings,
                ElementsAre("'" + path + "': a weight of nothing but zeros: fc.weight"));
  }
  path = npz({{"fc.weight", counted()}, {"fc.bias", Tensor::zeros({4})}});  // as biases may be
  EXPECT_THAT(load_weights(path, model_).warnings, testing::IsEmpty());
}

TEST_F(ImportedWeights, EveryTypeThatIsNoNumberIsNamed) {
  const std::string path = folder_.write(
      "t.npz",
      zip_bytes(
          {{.name = "fc.weight.npy", .bytes = npy_bytes("<c8", "(4, 8)", std::string(256, 0))},
           {.name = "fc.bias.npy", .bytes = npy_bytes("<U2", "(4,)", std::string(32, 0))},
           {.name = "note.npy", .bytes = npy_bytes("|S3", "()", "abc")}}));
  expect_throws<CheckpointError>(
      [&] { load_weights(path, model_); },
      "'fc.weight' is complex64 ('<c8') in the file; expected F32, F64, F16 or BF16; 'fc.bias' is "
      "text ('<U2') in the file; expected F32, F64, F16 or BF16; 'note' [] is in the file "
      "only, as text of bytes ('|S3')");
  const std::string good = raw_bytes(bias().to_vector());
  folder_.write("t.npz",
                zip_bytes({{.name = "fc.weight.npy",
                            .bytes = npy_bytes("<f4", "(4, 8)", raw_bytes(counted().to_vector()))},
                           {.name = "fc.bias.npy", .bytes = npy_bytes("<f4", "(4,)", good)},
                           {.name = "note.npy", .bytes = npy_bytes("|S3", "()", "abc")}}));
  load_weights(path, model_, {.skip = {"note"}});
  EXPECT_EQ(model_.parameter("fc.bias")->to_dense().to_vector(), bias().to_vector());
}

// Which is neither infinite nor NaN.
TEST_F(ImportedWeights, ValuesBeyondFloat32AreToldByTensorAndValue) {
  const std::vector<double> bias = {1, 2, -1e39, 4};
  const std::string path = folder_.write(
      "t.npz",
      zip_bytes({{.name = "fc.weight.npy",
                  .bytes = npy_bytes("<f4", "(4, 8)", raw_bytes(counted().to_vector()))},
                 {.name = "fc.bias.npy", .bytes = npy_bytes("<f8", "(4,)", raw_bytes(bias))}}));
  const std::vector<float> before = model_.parameter("fc.weight")->to_dense().to_vector();
  expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                 "the tensor 'fc.bias' in '" + path +
                                     "' has the value -1e+39 (its element 2, in row-major order), "
                                     "which is finite, but beyond the range of float32");
  EXPECT_EQ(model_.parameter("fc.weight")->to_dense().to_vector(), before);
}

TEST_F(ImportedWeights, FoldersOfHuggingFacesAreOpened) {
  std::filesystem::create_directory(folder_ / "hf");
  write_safetensors_arrays(folder_ / "hf/model.safetensors",
                           {{"fc.weight", counted()}, {"fc.bias", bias()}});
  load_weights(folder_ / "hf", model_);
  EXPECT_EQ(model_.parameter("fc.bias")->to_dense().to_vector(), bias().to_vector());
  std::filesystem::remove(folder_ / "hf/model.safetensors");
  folder_.write("hf/pytorch_model.bin", "\x80\x02}q.");  // a pickle
  // Where it is read from then.
  expect_throws<CheckpointError>([&] { load_weights(folder_ / "hf", model_); },
                                 "pytorch_model.bin', map_location='cpu', weights_only=True)");
  expect_throws<CheckpointError>([&] { load_weights(folder_ / "hf", model_); },
                                 ".items()}, '" + (folder_ / "hf/model.safetensors") + "')");
  expect_throws<CheckpointError>([&] { is_foreign_weights(folder_ / "hf"); }, "is a pickle");
  std::filesystem::rename(folder_ / "hf/pytorch_model.bin",
                          folder_ / "hf/pytorch_model.bin.index.json");
  expect_throws<CheckpointError>([&] { load_weights(folder_ / "hf", model_); },
                                 "glob.glob('" + (folder_ / "hf/pytorch_model-*.bin") + "')");
}

TEST_F(ImportedWeights, AreReadFromSeveralFiles) {
  std::filesystem::create_directory(folder_ / "hf");
  write_safetensors_arrays(folder_ / "hf/model-00001-of-00002.safetensors",
                           {{"fc.weight", counted()}});
  write_safetensors_arrays(folder_ / "hf/model-00002-of-00002.safetensors", {{"fc.bias", bias()}});
  const std::string index = folder_.write("hf/model.safetensors.index.json",
                                          R"({"weight_map": {
                                              "fc.weight": "model-00001-of-00002.safetensors",
                                              "fc.bias": "model-00002-of-00002.safetensors"}})");
  for (const std::string& path : {folder_ / "hf", index}) {
    model_.parameter("fc.bias")->assign(Tensor::zeros(bias().shape()));
    load_weights(path, model_);
    EXPECT_EQ(model_.parameter("fc.bias")->to_dense().to_vector(), bias().to_vector());
  }
  folder_.write("hf/model.safetensors.index.json", "{}");
  expect_throws<CheckpointError>([&] { load_weights(folder_ / "hf", model_); },
                                 "or damaged: there is no 'weight_map' in it");
}

// A static section goes on with the masks that were loaded, and zeros stay zeros; where it asks for
// more of them, the smallest |w| of what was loaded go.
TEST_F(ImportedWeights, StaticSparsityKeepsThem) {
  const std::string weights =
      npz({{"fc.weight", counted()}, {"fc.weight_mask", every_third()}, {"fc.bias", bias()}});
  const std::string data =
      "data: {type: synthetic, train_size: 64, test_size: 16, features: 8, classes: 4}\n"
      "optimizer: {type: sgd, lr: 0.1}\n"
      "train: {steps: 3, batch_size: 16}\n"
      "model:\n"
      "  init_from: " +
      weights +
      "\n"
      "  layers: [{type: linear, name: fc, out_features: 4}]\n";
  for (const char* sparsity :
       {"sparsity: {sparsity: 0.9, param_filter: fc.weight}\n",
        "sparsity: {algorithm: static, sparsity: 0.5, param_filter: fc.weight}\n",
        "sparsity: {param_filter: fc.weight}\n",
        "sparsity: [{algorithm: static, sparsity: 0.9, param_filter: default}]\n"}) {
    const auto experiment = build_experiment(parse_yaml(data + sparsity, "run.yaml"));
    const ParameterPtr weight = experiment->model->parameter("fc.weight");
    const bool asks_for_more = std::string_view(sparsity).find("0.9") != std::string_view::npos;
    const std::vector<float> values = weight->to_dense().to_vector();
    if (asks_for_more) {  // of 11 that count upwards the last 3
      EXPECT_EQ(weight->pattern()->nnz(), 3) << sparsity;
      for (const size_t i : {24, 27, 30}) {
        EXPECT_EQ(values[i], static_cast<float>(i + 1)) << sparsity;
      }
    } else {
      EXPECT_EQ(weight->mask(), every_third()) << sparsity;
      EXPECT_EQ(values[3], 4.0f);
    }
    EXPECT_EQ(weight->sparsified_by, "static");
    EXPECT_THAT(experiment->config.to_yaml(), HasSubstr("init_method: inherit"));
  }
  const auto dynamic = build_experiment(parse_yaml(
      data +
          "sparsity: {algorithm: set, sparsity: 0.5, update: {freq: 2}, param_filter: fc.weight}\n",
      "run.yaml"));
  EXPECT_EQ(dynamic->model->parameter("fc.weight")->mask(), every_third());
  EXPECT_THAT(dynamic->notes, Contains(HasSubstr("init_method: inherit")));
  const auto random = build_experiment(
      parse_yaml(data + "sparsity: {sparsity: 0.5, init_method: random, param_filter: fc.weight}\n",
                 "run.yaml"));
  EXPECT_EQ(random->model->parameter("fc.weight")->pattern()->nnz(), 16);
}

}  // namespace
}  // namespace lacuna
