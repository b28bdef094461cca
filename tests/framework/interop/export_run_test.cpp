// What a run is in each format, read back; what is refused, and that nothing is left half-written.
#include "lacuna/framework/interop/export_run.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "framework/interop/runs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "paths.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::export_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLayers = R"(
layers:
  - {type: conv2d, name: conv, out_channels: 4, kernel: 3, padding: 1, bias: false}
  - {type: batch_norm, name: bn}
  - flatten
  - {type: linear, name: fc, out_features: 3}
)";

std::map<std::string, Tensor> values_in(const std::string& path) {
  std::map<std::string, Tensor> values;
  const auto file = open_array_file(path);
  for (size_t i = 0; i < file->arrays().size(); ++i) {
    if (is_float(file->arrays()[i].type)) values[file->arrays()[i].name] = file->read(i);
  }
  return values;
}

void expect_same_bits(const std::map<std::string, Tensor>& found,
                      const std::map<std::string, Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    const Tensor& other = found.at(name);
    ASSERT_EQ(other.shape(), values.shape()) << name;
    EXPECT_EQ(std::memcmp(other.data(), values.data(), static_cast<size_t>(values.bytes())), 0)
        << name;
  }
}

// conv.weight [4, 2, 3, 3] in csr and fc.weight [3, 64] in 2:4, the rest dense.
class ExportRun : public testing::Test {
 protected:
  ExportRun() : model_(build_from(kLayers, kExample)) {
    model_->initialize(5);
    make_sparse("conv.weight", csr_layout(), 5);
    const ParameterPtr fc = model_->parameter("fc.weight");
    BitMask mask = BitMask::zeros(fc->numel());
    for (int64_t i = 0; i < fc->numel(); ++i) {
      if ((i + i / 64) % 4 < 2) mask.set(i);
    }
    fc->set_pattern(Pattern::make(layout_for(PatternShape::nm(2, 4)), fc->shape(), mask));
    write_run(run(), kLayers, kExample, *model_);
  }
  void make_sparse(const std::string& name, const Layout& layout, int64_t every) {
    const ParameterPtr parameter = model_->parameter(name);
    BitMask mask = BitMask::zeros(parameter->numel());
    for (int64_t i = 0; i < parameter->numel(); i += every) mask.set(i);
    parameter->set_pattern(Pattern::make(layout, parameter->shape(), mask));
  }
  std::string run() const { return folder_ / "run.h5"; }
  std::map<std::string, Tensor> expected() const {
    std::map<std::string, Tensor> values;
    for (const ParameterPtr& parameter : model_->parameters()) {
      values[parameter->name()] = parameter->to_dense();
    }
    for (const auto& [name, buffer] : model_->buffers()) values[name] = buffer->clone();
    return values;
  }

  const Shape kExample{2, 4, 4};
  TemporaryFolder folder_;
  std::unique_ptr<Sequential> model_;
};

TEST_F(ExportRun, DenseFormatsHoldEveryValue) {
  for (const char* format : {"safetensors", "npz"}) {
    const std::string path = folder_ / (std::string("w.") + format);
    const ExportedRun exported = export_run(run(), path, {.format = format});
    EXPECT_EQ(exported.step, 7);
    EXPECT_FALSE(exported.is_averaged);
    expect_same_bits(values_in(path), expected());
  }
}

TEST_F(ExportRun, MasksStandBesideTheirWeights) {
  for (const char* format : {"safetensors", "npz"}) {
    const std::string path = folder_ / (std::string("w.") + format);
    export_run(run(), path, {.format = format, .masks = true});
    const auto file = open_array_file(path);
    int masks = 0;
    for (size_t i = 0; i < file->arrays().size(); ++i) {
      const ArrayEntry& entry = file->arrays()[i];
      if (!entry.name.ends_with("_mask")) continue;
      ++masks;
      EXPECT_EQ(entry.type, ElementType::Bool);
      const std::string name = entry.name.substr(0, entry.name.size() - 5);
      EXPECT_EQ(file->read_mask(i), model_->parameter(name)->mask()) << name;
    }
    EXPECT_EQ(masks, 2);
    // And they are masks when they come back, with the pattern if that is asked for.
    const auto again = build_from(kLayers, kExample);
    load_weights(path, *again, {.find_pattern = true});
    for (const ParameterPtr& parameter : model_->parameters()) {
      const ParameterPtr other = again->parameter(parameter->name());
      EXPECT_EQ(other->mask(), parameter->mask());
      EXPECT_EQ(other->to_dense().to_vector(), parameter->to_dense().to_vector());
    }
    EXPECT_EQ(again->parameter("fc.weight")->pattern()->layout().name(), "nm 2:4");
  }
}

TEST_F(ExportRun, CsrHoldsWhatScipyTakes) {
  const std::string path = folder_ / "w.npz";
  export_run(run(), path, {.format = "csr-npz"});
  const auto file = open_array_file(path);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < file->arrays().size(); ++i) places[file->arrays()[i].name] = i;
  const ParameterPtr conv = model_->parameter("conv.weight");
  const Positions positions = conv->pattern()->positions();
  EXPECT_EQ(file->read(places.at("conv.weight.data")).to_vector(),
            conv->compacted(conv->values()).to_vector());
  EXPECT_EQ(file->arrays()[places.at("conv.weight.indices")].type, ElementType::I32);
  EXPECT_EQ(file->arrays()[places.at("conv.weight.indices")].shape, Shape{positions.count()});
  EXPECT_EQ(file->arrays()[places.at("conv.weight.indptr")].shape, Shape{5});
  EXPECT_EQ(file->arrays()[places.at("conv.weight.shape")].shape, Shape{2});
  EXPECT_EQ(file->arrays()[places.at("conv.weight.tensor_shape")].shape, Shape{4});
  EXPECT_TRUE(places.contains("fc.weight.data"));
  EXPECT_FALSE(places.contains("fc.weight.tensor_shape"));
  EXPECT_TRUE(places.contains("fc.bias"));
  EXPECT_TRUE(places.contains("bn.running_mean"));
  expect_throws<ConfigError>(
      [&] { export_run(run(), folder_ / "x.npz", {.format = "csr-npz", .masks = true}); },
      "cannot store masks");
  const auto again = build_from(kLayers, kExample);
  load_weights(path, *again);
  for (const ParameterPtr& parameter : model_->parameters()) {
    EXPECT_EQ(again->parameter(parameter->name())->mask(), parameter->mask());
    EXPECT_EQ(again->parameter(parameter->name())->to_dense().to_vector(),
              parameter->to_dense().to_vector());
  }
}

TEST_F(ExportRun, AveragesAreExportedAsEvalTakesThem) {
  StateDict averages;
  averages.set("fc.bias", Tensor::full({3}, 9));
  write_run(run(), kLayers, kExample, *model_, averages, "train: {ema: 0.9}");
  const ExportedRun exported = export_run(run(), folder_ / "w.npz", {.format = "npz"});
  EXPECT_TRUE(exported.is_averaged);
  EXPECT_THAT(values_in(folder_ / "w.npz").at("fc.bias").to_vector(), ElementsAre(9, 9, 9));
}

TEST_F(ExportRun, NothingIsOverwrittenUnasked) {
  const std::string path = folder_.write("w.npz", "mine");
  expect_throws<StateError>([&] { export_run(run(), path, {.format = "npz"}); },
                            "exists already: remove it, give another path");
  EXPECT_EQ(read_text(path), "mine");
  export_run(run(), path, {.format = "npz", .overwrite = true});
  expect_same_bits(values_in(path), expected());
}

TEST_F(ExportRun, MistakesAreNamedAndLeaveNothing) {
  const std::string path = folder_ / "out";
  expect_throws<ConfigError>([&] { export_run(run(), path, {.format = "safetensor"}); },
                             "did you mean 'safetensors'?");
  expect_throws<ConfigError>([&] { export_run(run(), path, {.format = "hf"}); },
                             "is written as layers");
  expect_throws<CheckpointError>([&] { export_run(folder_ / "none", path, {}); }, "none");
  expect_throws<StateError>(
      [&] { export_run(run(), folder_ / "no/such/w.npz", {.format = "npz"}); }, "no/such/w.npz");
  save_model(folder_ / "model.h5", *model_);
  expect_throws<CheckpointError>([&] { export_run(folder_ / "model.h5", path, {}); },
                                 "without the configuration of a run");
  EXPECT_EQ(listing(folder_.path()), "model.h5 run.h5");
}

// The model of a preset as its file has it, through lacuna and out again.
struct Family {
  const char *name, *yaml;
  Shape example;
};

class HuggingFaceExport : public testing::TestWithParam<Family> {};

TEST_P(HuggingFaceExport, GivesBackTheTensorsBitForBit) {
  const TemporaryFolder folder;
  const Family& family = GetParam();
  const std::string source =
      std::string(kSourceFolder) + "/tests/golden/models/" + family.name + ".safetensors";
  const auto model = build_from(family.yaml, family.example);
  load_weights(source, *model);
  write_run(folder / "run.h5", family.yaml, family.example, *model);
  export_run(folder / "run.h5", folder / "hf", {.format = "hf"});
  EXPECT_EQ(listing(folder / "hf"), "config.json model.safetensors");
  EXPECT_EQ(listing(folder.path()), "hf run.h5");
  expect_same_bits(values_in(folder / "hf/model.safetensors"), values_in(source));
  // The folder describes the same model, and holds its values.
  const auto again = build_from("from_hf: " + (folder / "hf"), family.example);
  load_weights(folder / "hf", *again);
  ASSERT_EQ(again->parameters().size(), model->parameters().size());
  for (const ParameterPtr& parameter : model->parameters()) {
    EXPECT_EQ(again->parameter(parameter->name())->to_dense().to_vector(),
              parameter->to_dense().to_vector());
  }
  // With masks, which are turned round as their weights are.
  for (const ParameterPtr& parameter : model->parameters()) {
    if (parameter->use != WeightUse::Linear) continue;
    BitMask mask = BitMask::zeros(parameter->numel());
    for (int64_t i = 0; i < parameter->numel(); i += 3) mask.set(i);
    parameter->set_pattern(Pattern::masked(parameter->shape(), mask));
  }
  write_run(folder / "sparse.h5", family.yaml, family.example, *model);
  expect_throws<StateError>(
      [&] { export_run(folder / "sparse.h5", folder / "hf", {.format = "hf"}); }, "exists already");
  export_run(folder / "sparse.h5", folder / "hf",
             {.format = "hf", .masks = true, .overwrite = true});
  load_weights(folder / "hf", *again);
  for (const ParameterPtr& parameter : model->parameters()) {
    EXPECT_EQ(again->parameter(parameter->name())->mask(), parameter->mask()) << parameter->name();
  }
  std::filesystem::create_directory(folder / "mine");
  write_text(folder / "mine/notes.txt", "mine");
  expect_throws<StateError>(
      [&] { export_run(folder / "run.h5", folder / "mine", {.format = "hf", .overwrite = true}); },
      "holds other files than an export's ('notes.txt')");
  EXPECT_EQ(listing(folder.path()), "hf mine run.h5 sparse.h5");
  // With a card, which stays as somebody has filled it in until another one is asked for.
  export_run(folder / "run.h5", folder / "hf", {.format = "hf", .overwrite = true, .card = true});
  EXPECT_EQ(listing(folder / "hf"), "README.md config.json model.safetensors");
  const std::string card = read_text(folder / "hf/README.md");
  EXPECT_NE(card.find("library_name: transformers\n"), std::string::npos);
  EXPECT_NE(card.find("AutoModel.from_pretrained"), std::string::npos);
  write_text(folder / "hf/README.md", card + "filled in");
  export_run(folder / "run.h5", folder / "hf", {.format = "hf", .overwrite = true});
  EXPECT_EQ(read_text(folder / "hf/README.md"), card + "filled in");
  write_text(folder / "hf/README.md", "of somebody's");
  expect_throws<StateError>(
      [&] { export_run(folder / "run.h5", folder / "hf", {.format = "hf", .overwrite = true}); },
      "holds other files than an export's ('README.md')");
}

INSTANTIATE_TEST_SUITE_P(
    Families, HuggingFaceExport,
    testing::Values(
        Family{"gpt2_tiny",
               "{type: gpt2, vocab_size: 53, n_positions: 24, n_embd: 32, n_layer: 2, n_head: 4}",
               Shape{24}},
        Family{"bert_tiny",
               "{type: bert, vocab_size: 61, max_position_embeddings: 20, hidden_size: 32, "
               "num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64, "
               "pad_token_id: 0, num_labels: 3}",
               Shape{20}},
        Family{"vit_tiny",
               "{type: vit, patch_size: 4, hidden_size: 24, num_hidden_layers: 2, "
               "num_attention_heads: 3, intermediate_size: 48, num_labels: 5}",
               Shape{3, 16, 16}}),
    [](const testing::TestParamInfo<Family>& family) { return std::string(family.param.name); });

TEST(HuggingFaceFolders, SayWhatTransformersWantToKnow) {
  const TemporaryFolder folder;
  const auto config_of = [&](const std::string& yaml, const Shape& example) {
    std::filesystem::remove_all(folder / "hf");
    const auto model = build_from(yaml, example);
    model->initialize(1);
    write_run(folder / "run.h5", yaml, example, *model);
    export_run(folder / "run.h5", folder / "hf", {.format = "hf"});
    return load_yaml(folder / "hf/config.json");
  };
  const std::string bert =
      "type: bert, vocab_size: 11, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "
      "intermediate_size: 8, max_position_embeddings: 6";
  Config json = config_of("{" + bert + ", num_labels: 3}", Shape{6});
  EXPECT_EQ(json.at("model_type").text(), "bert");
  EXPECT_EQ(json.at("architectures").items()[0].text(), "BertForSequenceClassification");
  EXPECT_EQ(json.at("id2label").at("2").text(), "LABEL_2");
  EXPECT_FALSE(json.has("head"));
  EXPECT_FALSE(json.has("num_labels"));
  json = config_of("{" + bert + ", head: masked_lm}", Shape{6});
  EXPECT_EQ(json.at("architectures").items()[0].text(), "BertForMaskedLM");
  EXPECT_FALSE(json.has("id2label"));
  const auto names = values_in(folder / "hf/model.safetensors");
  EXPECT_TRUE(names.contains("cls.predictions.bias"));
  EXPECT_FALSE(names.contains("cls.predictions.decoder.bias"));
  EXPECT_FALSE(names.contains("cls.predictions.decoder.weight"));
  json = config_of(
      "{type: llama, vocab_size: 11, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
      "num_attention_heads: 2}",
      Shape{6});
  EXPECT_EQ(json.at("architectures").items()[0].text(), "LlamaForCausalLM");
  EXPECT_EQ(json.required<int64_t>("max_position_embeddings"), 2048);
  EXPECT_EQ(json.required<int64_t>("num_key_value_heads"), 2);
  json = config_of(
      "{type: distilbert, vocab_size: 11, dim: 8, n_layers: 1, n_heads: 2, "
      "max_position_embeddings: 6}",
      Shape{6});
  EXPECT_EQ(json.required<int64_t>("hidden_dim"), 32);  // not transformers' default
  EXPECT_EQ(json.at("architectures").items()[0].text(), "DistilBertForSequenceClassification");
  expect_throws<ConfigError>([&] { config_of("{" + bert + ", pooling: mean}", Shape{6}); },
                             "no `pooling: mean`");
  expect_throws<ConfigError>(
      [&] {
        config_of("{type: cifar_resnet, depth: 8}", Shape{3, 8, 8});
      },
      "not a model family of Hugging Face");
  EXPECT_EQ(listing(folder.path()), "run.h5");
}

TEST_F(ExportRun, LoadedRunsPredictAndKeepTheirPatterns) {
  const LoadedRun run = load_run(this->run());
  EXPECT_EQ(run.step, 7);
  EXPECT_FALSE(run.model->training());
  EXPECT_EQ(run.model->parameter("fc.weight")->pattern()->layout().name(), "nm 2:4");
  EXPECT_EQ(run.inputs.example_shape, kExample);
  std::vector<float> inputs;
  for (int i = 0; i < 300 * 32; ++i) inputs.push_back(static_cast<float>(i % 7) - 3.0f);
  const Tensor outputs = run.predict({.example_shape = kExample, .inputs = inputs});
  ASSERT_EQ(outputs.shape(), (Shape{300, 3}));
  model_->eval();
  const NoGrad no_grad;
  const Tensor direct =
      (*model_)(Variable(Tensor::from({300, 2, 4, 4}, inputs))).value().to(Order::RowMajor);
  for (int64_t i = 0; i < 900; ++i) EXPECT_NEAR(outputs.data()[i], direct.data()[i], 1e-5f);
  expect_throws<DataError>(
      [&] { run.predict({.example_shape = {3}, .inputs = std::vector<float>(3)}); }, "[2, 4, 4]");
}

}  // namespace
}  // namespace lacuna::export_run_test
