// Weights under other names and from other frameworks' files: what load_weights takes and refuses.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/layers/batch_norm.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/static.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::foreign_weights_test {
namespace {

using testing::Each;
using testing::ElementsAre;

// Divides by a number that is a buffer.
class Scale final : public Module {
 public:
  Scale() : mean(register_buffer("mean", Tensor::zeros({2}))) {}
  std::string_view type() const override { return "scale"; }
  Tensor& mean;

 protected:
  Variable forward(const Variable& input) override { return input; }
};

using Named = std::vector<std::pair<std::string, Tensor>>;

// fc1.weight [2, 3], fc1.bias [2], norm.mean [2], fc2.weight [4, 2].
class ForeignWeights : public testing::Test {
 protected:
  ForeignWeights() {
    define(model_);
    model_.initialize(1);
  }
  static void define(Sequential& model) {
    model.add<Linear>("fc1", {.in_features = 3, .out_features = 2});
    model.add("norm", std::make_unique<Scale>());
    model.add<Linear>("fc2", {.in_features = 2, .out_features = 4, .bias = false});
  }
  // Everything that the model has, each array full of one number.
  static Named tensors(const std::string& prefix = "") {
    return {{prefix + "fc1.weight", Tensor::full({2, 3}, 1)},
            {prefix + "fc1.bias", Tensor::full({2}, 2)},
            {prefix + "norm.mean", Tensor::full({2}, 3)},
            {prefix + "fc2.weight", Tensor::full({4, 2}, 4)}};
  }
  std::string write(const Named& values) {
    write_safetensors(folder_ / "w.safetensors", values);
    return folder_ / "w.safetensors";
  }
  std::vector<float> values(const std::string& name) const {
    return model_.parameter(name)->to_dense().to_vector();
  }
  std::vector<float> mean() { return model_.buffers().front().second->to_vector(); }
  std::vector<float> everything() {
    std::vector<float> all = mean();
    for (const ParameterPtr& parameter : model_.parameters()) {
      std::ranges::copy(parameter->to_dense().to_vector(), std::back_inserter(all));
    }
    return all;
  }
  void expect_loaded() {
    EXPECT_THAT(values("fc1.weight"), Each(1));
    EXPECT_THAT(values("fc1.bias"), Each(2));
    EXPECT_THAT(mean(), Each(3));
    EXPECT_THAT(values("fc2.weight"), Each(4));
  }
  // With all of these words, and nothing has changed.
  void refused(const std::string& path, const std::vector<std::string>& words,
               const WeightNames& names = {}) {
    const std::vector<float> before = everything();
    for (const std::string& text : words) {
      expect_throws<CheckpointError>([&] { load_weights(path, model_, names); }, text);
    }
    EXPECT_EQ(everything(), before);
  }

  TemporaryFolder folder_;
  Sequential model_;
};

TEST_F(ForeignWeights, ParametersAndBuffersComeFromSafetensors) {
  load_weights(write(tensors()), model_);
  expect_loaded();
}

TEST_F(ForeignWeights, NoBufferIsSharedWithAnother) {
  const std::string path = write(tensors());
  load_weights(path, model_);
  model_.buffers().front().second->mutable_data()[0] = 9;
  Sequential other;
  define(other);
  load_weights(path, other);
  EXPECT_THAT(other.buffers().front().second->to_vector(), ElementsAre(3, 3));
}

TEST_F(ForeignWeights, ASparseParameterBecomesDense) {
  Static sparsity({.sparsity = 0.5, .param_filter = "fc1.weight"});
  model_.apply(sparsity);
  load_weights(write(tensors()), model_);
  EXPECT_TRUE(model_.parameter("fc1.weight")->pattern()->is_dense());
  expect_loaded();
}

TEST_F(ForeignWeights, RenameChangesTheFilesNamesByTheFirstRuleThatMatches) {
  Named values = tensors("module.");
  values[2].first = "module.bn.running_average";
  load_weights(
      write(values), model_,
      {.rename = {{"module.bn.*", "norm.mean"}, {"module.*", "*"}, {"*", "lost.*"}}, .skip = {}});
  expect_loaded();
}

TEST_F(ForeignWeights, ARuleThatMatchesNothingIsNoMistakeWhereAllFits) {
  load_weights(write(tensors()), model_, {.rename = {{"module.*", "*"}}, .skip = {}});
  expect_loaded();
}

TEST_F(ForeignWeights, SkippedOnesKeepTheirValuesWhateverTheFileHas) {
  const std::vector<float> before = values("fc2.weight");
  Named file = tensors("module.");
  file[3].second = Tensor::zeros({1000, 2});                    // another head,
  file.emplace_back("module.fc2.bias", Tensor::zeros({1000}));  // which has a bias
  file.erase(file.begin() + 2);                                 // and no buffer
  load_weights(write(file), model_, {.rename = {{"module.*", "*"}}, .skip = {"fc2.*", "norm.*"}});
  EXPECT_THAT(values("fc1.weight"), Each(1));
  EXPECT_EQ(values("fc2.weight"), before);
  EXPECT_THAT(mean(), Each(0));
}

// First values are drawn anew for a first mask, and a skipped parameter still has its first ones.
TEST_F(ForeignWeights, SkippedOnesAreStillFirstValues) {
  const auto sparse_head = [](Sequential& model, const std::function<void()>& load) {
    model.add<Linear>(
        "fc",
        {.in_features = 4, .out_features = 2, .bias = false, .init_fan_in = FanIn::nonzeros()});
    model.initialize(1);
    load();
    Static sparsity({.sparsity = 0.5, .param_filter = "fc.weight"});
    model.apply(sparsity);
    return model.parameter("fc.weight")->to_dense().to_vector();
  };
  const std::string path = write({});
  Sequential drawn, skipped;
  const std::vector<float> first = sparse_head(drawn, [] {});
  EXPECT_EQ(first, sparse_head(skipped, [&] {
              load_weights(path, skipped, {.rename = {}, .skip = {"fc.*"}});
            }));
}

TEST_F(ForeignWeights, BookkeepingOfOthersIsPassedOver) {
  std::string header = "{", data;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                       const std::string& bytes) {
    header += (header == "{" ? "" : ",") +
              safetensors_entry(name, dtype, shape,
                                "[" + std::to_string(data.size()) + "," +
                                    std::to_string(data.size() + bytes.size()) + "]");
    data += bytes;
  };
  for (const auto& [name, values] : tensors()) {
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    std::string shape = values.shape().to_string();
    std::erase(shape, ' ');
    add(name, "F32", shape, {bytes, static_cast<size_t>(values.bytes())});
  }
  add("norm.num_batches_tracked", "I64", "[]", std::string(8, '\1'));
  add("num_batches_tracked", "I64", "[]", std::string(8, '\1'));
  add("h.0.attn.bias", "U8", "[1,1,2,2]", std::string(4, '\1'));
  add("h.1.attn.bias", "F32", "[1,1]", std::string(4, '\0'));
  add("h.0.attn.masked_bias", "F32", "[]", std::string(4, '\0'));
  const std::string path = folder_.write("w.safetensors", safetensors_bytes(header + "}", data));
  load_weights(path, model_);
  expect_loaded();
}

TEST_F(ForeignWeights, BookkeepingThatTheModelHasIsNone) {
  Sequential model;
  auto block = std::make_unique<Sequential>();
  block->add<Linear>("attn", {.in_features = 1, .out_features = 2});
  model.add("h", std::move(block));
  const std::string path =
      write({{"h.attn.weight", Tensor::full({2, 1}, 1)}, {"h.attn.bias", Tensor::full({2}, 5)}});
  load_weights(path, model);
  EXPECT_THAT(model.parameter("h.attn.bias")->to_dense().to_vector(), ElementsAre(5, 5));
  expect_throws<CheckpointError>(
      [&] {
        load_weights(write({{"h.attn.weight", Tensor::full({2, 1}, 1)}}), model);
      },
      "'h.attn.bias' [2] is in the model only");
}

TEST_F(ForeignWeights, AllThatDoesNotFitIsNamedAtOnce) {
  const std::string path = write({{"fc1.weight", Tensor::zeros({3, 2})},
                                  {"fc2.weight", Tensor::zeros({4, 2})},
                                  {"norm.mean", Tensor::zeros({1})},
                                  {"head.bias", Tensor::zeros({7})}});
  refused(path, {"the values in '" + path +
                 "' belong to a different model: 'fc1.weight' is [2, 3] in the model, [3, 2] in "
                 "the file; 'fc1.bias' [2] is in the model only; 'norm.mean' is [2] in the model, "
                 "[1] in the file; 'head.bias' [7] is in the file only; `rename` changes names of "
                 "the file, `skip` leaves the model's as they are"});
}

TEST_F(ForeignWeights, RenamedOnesAreNamedAsInTheFileToo) {
  Named values = tensors("module.");
  values[1].second = Tensor::zeros({5});
  values.emplace_back("module.head", Tensor::zeros({7}));
  refused(write(values),
          {"'fc1.bias' is [2] in the model, [5] in the file as 'module.fc1.bias'; 'head' [7] is in "
           "the file only (there 'module.head')"},
          {.rename = {{"module.*", "*"}}, .skip = {}});
}

TEST_F(ForeignWeights, ARuleThatMatchesNothingIsNamedWhereNotAllFits) {
  refused(write(tensors("module.")),
          {"'module.norm.mean' [2] is in the file only; rename: 'modul.*' matches no name in the "
           "file; `rename` changes"},
          {.rename = {{"modul.*", "*"}}, .skip = {}});
}

TEST_F(ForeignWeights, TwoOfOneNameAreRefused) {
  Named values = tensors();
  values.emplace_back("module.fc1.bias", Tensor::zeros({2}));
  refused(write(values), {"'fc1.bias' and 'module.fc1.bias' of the file would both be 'fc1.bias'"},
          {.rename = {{"module.*", "*"}}, .skip = {}});
}

TEST_F(ForeignWeights, IntegersAreNoValues) {
  std::string header = "{";
  header += safetensors_entry("fc1.weight", "I32", "[2,3]", "[0,24]") + ",";
  header += safetensors_entry("fc1.bias", "F32", "[2]", "[24,32]") + ",";
  header += safetensors_entry("norm.mean", "I64", "[2]", "[32,48]") + ",";
  header += safetensors_entry("fc2.weight", "F32", "[4,2]", "[48,80]") + "}";
  refused(folder_.write("i.safetensors", safetensors_bytes(header, std::string(80, '\0'))),
          {"'fc1.weight' is I32 in the file; expected F32, F64, F16 or BF16; 'norm.mean' is I64 in "
           "the file; expected F32, F64, F16 or BF16"});
}

TEST_F(ForeignWeights, ValuesThatAreNotFiniteAreRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Named named = tensors();
    named[2].second = Tensor::from({2}, std::vector<float>{1, bad});
    const std::vector<float> before = values("fc1.weight");
    const std::string path = write(named);
    expect_throws<CheckpointError>(
        [&] { load_weights(path, model_); },
        "'norm.mean' has values that are NaN or infinite (in '" + path +
            "'): nothing can be computed with them; take weights without, or leave that name out "
            "with `skip`");
    EXPECT_EQ(values("fc1.weight"), before);
  }
  // A model's own file, too.
  model_.parameter("fc2.weight")->mutable_values().mutable_data()[3] =
      std::numeric_limits<float>::infinity();
  save_model(folder_ / "model.h5", model_);
  expect_throws<CheckpointError>(
      [&] { load_weights(folder_ / "model.h5", model_); },
      "'fc2.weight' has values that are NaN or infinite (in '" + (folder_ / "model.h5") + "')");
}

TEST_F(ForeignWeights, AVarianceBelowZeroIsRefused) {
  Sequential model;
  model.add<BatchNorm>("bn", {.channels = 2});
  model.initialize(1);
  const std::string path = write({{"bn.weight", Tensor::full({2}, 1)},
                                  {"bn.bias", Tensor::full({2}, 1)},
                                  {"bn.running_mean", Tensor::full({2}, -1)},
                                  {"bn.running_var", Tensor::from({2}, std::vector{1.0f, -0.5f})}});
  const std::string message = "' has a variance below 0: -0.5 in 'bn.running_var', channel 1";
  expect_throws<CheckpointError>([&] { load_weights(path, model); }, "'" + path + message);
  for (const auto& [name, buffer] : model.buffers()) {
    if (name == "bn.running_var") *buffer = Tensor::from({2}, std::vector{1.0f, -0.5f});
  }
  save_model(folder_ / "own.h5", model);
  expect_throws<CheckpointError>([&] { load_weights(folder_ / "own.h5", model); },
                                 (folder_ / "own.h5") + message);
}

TEST_F(ForeignWeights, ASkipThatMatchesNothingIsRefused) {
  const std::string path = write(tensors());
  expect_throws<ConfigError>(
      [&] { load_weights(path, model_, {.rename = {}, .skip = {"fc2.wait"}}); },
      "skip: 'fc2.wait' matches neither a name of the model nor one in '" + path +
          "'; did you mean 'fc2.weight'?");
}

TEST_F(ForeignWeights, MoreStarsThanThereAreMatchesAreRefused) {
  expect_throws<ConfigError>(
      [&] {
        load_weights(write(tensors()), model_, {.rename = {{"a.*", "*.*"}}, .skip = {}});
      },
      "rename: '*.*' has more stars than 'a.*', but each is replaced by the match of one of these");
}

TEST_F(ForeignWeights, DamagedFilesAreNamed) {
  expect_throws<CheckpointError>(
      [&] { load_weights(folder_ / "none.safetensors", model_); },
      "cannot read '" + (folder_ / "none.safetensors") + "': No such file or directory");
  const std::string path = folder_.write("bad.safetensors", "no weights");
  expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                 "'" + path + "' is not a valid safetensors file: ");
}

class RenamedCheckpoint : public ForeignWeights {
 protected:
  // Of a model whose layers stand in a group, with its values, fc1.weight in a layout.
  std::string save(const Layout& layout) {
    Sequential model;
    auto group = std::make_unique<Sequential>();
    define(*group);
    model.add("module", std::move(group));
    for (const auto& [name, tensor] : tensors("module.")) {
      if (name.ends_with("mean")) continue;
      model.parameter(name)->assign(tensor);
    }
    *model.buffers().front().second = Tensor::full({2}, 3);
    const std::vector<int64_t> kept{1, 2, 5};
    model.parameter("module.fc1.weight")
        ->set_pattern(Pattern::make(layout, {2, 3}, Positions::of({2, 3}, kept)));
    model.parameter("module.fc1.weight")->prune();
    save_model(folder_ / "model.h5", model);
    return folder_ / "model.h5";
  }
};

TEST_F(RenamedCheckpoint, KeepsLayoutsMasksAndBuffers) {
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    load_weights(save(*layout), model_, {.rename = {{"module.*", "*"}}, .skip = {}});
    const ParameterPtr weight = model_.parameter("fc1.weight");
    EXPECT_EQ(&weight->pattern()->layout(), layout);
    EXPECT_THAT(values("fc1.weight"), ElementsAre(0, 1, 1, 0, 0, 1));
    EXPECT_THAT(values("fc1.bias"), Each(2));
    EXPECT_THAT(values("fc2.weight"), Each(4));
    EXPECT_THAT(mean(), Each(3));
  }
}

TEST_F(RenamedCheckpoint, SkipsAndRefusesAsOtherFilesDo) {
  const std::string path = save(masked_layout());
  const std::vector<float> before = values("fc2.weight");
  load_weights(path, model_, {.rename = {{"module.*", "*"}}, .skip = {"fc2.*", "norm.mean"}});
  EXPECT_THAT(values("fc1.bias"), Each(2));
  EXPECT_EQ(values("fc2.weight"), before);
  EXPECT_THAT(mean(), Each(0));
  refused(path,
          {"the values in '" + path +
               "' belong to a different model: 'norm.mean' [2] is in the model only",
           "'norm.average' [2] is in the file only (there 'module.norm.mean')"},
          {.rename = {{"*.mean", "norm.average"}, {"module.*", "*"}}, .skip = {}});
}

TEST_F(RenamedCheckpoint, ABufferTakesNoCompressedParameter) {
  Sequential other;
  other.add<Linear>("fc", {.in_features = 2, .out_features = 1, .bias = false});
  other.parameter("fc.weight")
      ->set_pattern(Pattern::make(csr_layout(), {1, 2}, Positions::all({1, 2})));
  save_model(folder_ / "model.h5", other);
  struct Model final : Module {
    Model() { register_buffer("mean", Tensor::zeros({1, 2})); }
    std::string_view type() const override { return "model"; }
    Variable forward(const Variable& input) override { return input; }
  } model;
  expect_throws<CheckpointError>(
      [&] {
        load_weights(folder_ / "model.h5", model, {.rename = {{"fc.weight", "mean"}}, .skip = {}});
      },
      "'mean' is a buffer in the model, a parameter with only nonzeros in the file as 'fc.weight'");
}

TEST_F(RenamedCheckpoint, WithoutNamesTheFileIsNamedInTheError) {
  const std::string path = save(masked_layout());
  refused(path,
          {"the checkpoint belongs to a different model: 'fc1.weight' [2, 3] is in the model only",
           "(in '" + path + "')"});
}

}  // namespace
}  // namespace lacuna::foreign_weights_test
