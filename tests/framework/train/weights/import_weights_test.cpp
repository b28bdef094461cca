// Weights of other tools: npz, npy and safetensors, names that differ, damage. Masks:
// import_masks_test.cpp; pickles: pickles_test.cpp.
#include <gmock/gmock.h>

#include "framework/train/weights/imported_weights.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "throws.h"

namespace lacuna::import_weights_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

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
                          "': a mask with only zeros, so no weight is left there: fc.weight; in a "
                          "mask, 1 means kept"));
  EXPECT_EQ(model_.parameter("fc.weight")->pattern()->nnz(), 0);
  for (const bool find_pattern : {false, true}) {
    path = safetensors({{"fc.weight", zeros}, {"fc.bias", Tensor::zeros({4})}});
    EXPECT_THAT(load_weights(path, model_, {.find_pattern = find_pattern}).warnings,
                ElementsAre("'" + path + "': a weight with only zeros: fc.weight"));
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
                                     "which is beyond the range of float32");
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
                                 "or is damaged: there is no 'weight_map' in it");
}

}  // namespace
}  // namespace lacuna::import_weights_test
