// `lacuna export --sparse`: what is written, read back, and refused.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>
#include <vector>

#include "framework/interop/runs.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/train/weights/stored_values.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::export_sparse_test {
namespace {

constexpr const char* kSparseLayers = R"(
layers:
  - {type: conv2d, name: conv, out_channels: 4, kernel: 3, padding: 1, bias: false}
  - {type: batch_norm, name: bn}
  - flatten
  - {type: linear, name: fc, out_features: 30}
)";

// conv.weight [4, 2, 3, 3] masked and fc.weight [30, 64] in csr, the rest dense.
class SparseExport : public testing::Test {
 protected:
  SparseExport() : model_(build_from(kSparseLayers, kExample)) {
    model_->initialize(5);
    make_sparse("conv.weight", masked_layout(), 5);
    make_sparse("fc.weight", csr_layout(), 7);
    write_run(run(), kSparseLayers, kExample, *model_);
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

TEST_F(SparseExport, SparseFilesAreReadBackWithTheirMasksAndAreSmaller) {
  const std::string path = folder_ / "w.safetensors", dense = folder_ / "dense.safetensors";
  const ExportedRun exported = export_run(run(), path, {.format = "safetensors", .sparse = true});
  const ExportedRun whole = export_run(run(), dense, {.format = "safetensors"});
  EXPECT_EQ(exported.bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
  EXPECT_EQ(whole.dense_bytes, 0);
  EXPECT_LT(exported.bytes, whole.bytes);

  const std::unique_ptr<StoredValues> stored = open_stored_arrays(path);
  StateDict state;
  for (const auto& [name, item] : stored->items()) stored->copy(name, name, state);
  EXPECT_EQ(stored->items().at("fc.weight").mask, "fc.weight.bitmask");
  for (const auto& [name, values] : expected()) {
    ASSERT_EQ(state.get<Tensor>(name).shape(), values.shape()) << name;
    EXPECT_EQ(std::memcmp(state.get<Tensor>(name).data(), values.data(),
                          static_cast<size_t>(values.bytes())),
              0)
        << name;
  }
  for (const char* name : {"conv.weight", "fc.weight"}) {
    EXPECT_EQ(state.get<ByteArray>(std::string(name) + "_mask"), model_->parameter(name)->mask());
  }
  EXPECT_EQ(state.values().size(), expected().size() + 2);
}

TEST_F(SparseExport, ANoteNamesToolsThatDoNotReadSparseInitializers) {
  const ExportedRun sparse =
      export_run(run(), folder_ / "sparse.onnx", {.format = "onnx", .sparse = true});
  EXPECT_THAT(
      sparse.notes,
      testing::ElementsAre("2 weights are stored as sparse initializers. OpenCV's dnn and onnx's "
                           "check_model(full_check=True) do not read them; ONNX Runtime does. For "
                           "tools that do not, export without --sparse"));
  EXPECT_TRUE(export_run(run(), folder_ / "dense.onnx", {.format = "onnx"}).notes.empty());
  const auto all_nonzero = build_from(kSparseLayers, kExample);
  all_nonzero->initialize(5);
  write_run(folder_ / "all.h5", kSparseLayers, kExample, *all_nonzero);
  EXPECT_TRUE(
      export_run(folder_ / "all.h5", folder_ / "all.onnx", {.format = "onnx", .sparse = true})
          .notes.empty());
}

TEST_F(SparseExport, NotesAreReportedBeforeThereIsAFile) {
  const std::string path = folder_ / "w.onnx";
  std::vector<std::string> reported;
  const auto report = [&](const std::string& note) {
    EXPECT_FALSE(std::filesystem::exists(path));
    reported.push_back(note);
  };
  const ExportedRun exported =
      export_run(run(), path, {.format = "onnx", .sparse = true, .report_note = report});
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(reported, exported.notes);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_THAT(reported[0], testing::StartsWith("2 weights are stored as sparse initializers."));
}

// Text in headers has as many digits as its numbers: 1 % of a file of 9 kB, 3 % with those of zip.
TEST_F(SparseExport, SizesAreComparedWithThoseOfDenseFiles) {
  for (const auto& [sparse, dense, tolerance] :
       std::vector<std::tuple<const char*, const char*, double>>{
           {"safetensors", "safetensors", 0.01},
           {"onnx", "onnx", 0.01},
           {"csr-npz", "npz", 0.03}}) {
    const std::string name = sparse;
    const ExportedRun small = export_run(run(), folder_ / (name + "_small"),
                                         {.format = sparse, .sparse = name != "csr-npz"});
    const ExportedRun whole = export_run(run(), folder_ / (name + "_whole"), {.format = dense});
    EXPECT_LT(small.bytes, whole.bytes) << name;
    EXPECT_NEAR(static_cast<double>(small.dense_bytes), static_cast<double>(whole.bytes),
                tolerance * static_cast<double>(whole.bytes))
        << name;
  }
}

TEST_F(SparseExport, DamagedSparseWeightsAreRefused) {
  const auto refused = [&](std::vector<NamedArray> arrays, const std::string& message) {
    const std::string path = folder_ / "bad.safetensors";
    write_safetensors_arrays(path, arrays);
    expect_throws<CheckpointError>(
        [&] {
          StateDict state;
          open_stored_arrays(path)->copy("w", "w", state);
        },
        message);
  };
  const NamedArray data{"w.data", Tensor::full({3}, 1.0f)};
  const NamedArray shape{"w.shape", std::vector<int64_t>{5, 7}};
  const auto words = [](std::vector<int32_t> values) { return NamedArray{"w.bitmask", values}; };
  refused({data, words({7}), shape}, "the arrays of 'w' in");
  refused({data, words({7}), shape}, "expected 2 words of 32 bits for shape [5, 7], found 1");
  refused({data, words({3, 0}), shape}, "3 values for 2 positions");
  refused({data, words({3, 8}), shape}, "a bit is set after the last position");
  refused({data, words({7, 0}), shape, {"w", Tensor::zeros({5, 7})}}, "dense and by a bitmask");
}

TEST_F(SparseExport, SparseGoesWithFormatsThatHaveIt) {
  for (const char* format : {"npz", "csr-npz"}) {
    expect_throws<ConfigError>(
        [&] { export_run(run(), folder_ / "w", {.format = format, .sparse = true}); },
        "does not support --sparse; safetensors and onnx do");
  }
  expect_throws<ConfigError>(
      [&] {
        export_run(run(), folder_ / "w", {.format = "safetensors", .masks = true, .sparse = true});
      },
      "--sparse stores the masks");
}

}  // namespace
}  // namespace lacuna::export_sparse_test
