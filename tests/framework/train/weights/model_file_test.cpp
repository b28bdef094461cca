#include "lacuna/framework/train/weights/model_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/static.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::model_file_test {
namespace {

void define(Sequential& model, int64_t outputs = 5) {
  model.add<Linear>("fc1", {.in_features = 7, .out_features = outputs});
  model.add<Linear>("fc2", {.in_features = outputs, .out_features = 2});
}

TEST(ModelFile, GivesBackValuesAndMasks) {
  const TemporaryFolder folder;
  Sequential model, loaded;
  define(model);
  define(loaded);
  model.initialize(3);
  Static sparsity({.sparsity = 0.5, .param_filter = "fc1.weight"});
  model.apply(sparsity);
  save_model(folder / "model.h5", model);
  load_weights(folder / "model.h5", loaded);
  for (const ParameterPtr& parameter : model.parameters()) {
    const ParameterPtr other = loaded.parameter(parameter->name());
    EXPECT_EQ(parameter->to_dense().to_vector(), other->to_dense().to_vector());
    EXPECT_EQ(parameter->pattern()->nnz(), other->pattern()->nnz());
  }
  EXPECT_EQ(loaded.parameter("fc1.weight")->pattern()->nnz(), 17);
}

TEST(ModelFile, RefusesAnotherModelAndChangesNothing) {
  const TemporaryFolder folder;
  Sequential model, other;
  define(model);
  define(other, 6);
  other.initialize(1);
  const std::vector<float> before = other.parameter("fc2.bias")->to_dense().to_vector();
  save_model(folder / "model.h5", model);
  expect_throws<CheckpointError>([&] { load_weights(folder / "model.h5", other); },
                                 "the checkpoint belongs to a different model");
  EXPECT_EQ(other.parameter("fc2.bias")->to_dense().to_vector(), before);
}

TEST(ModelFile, RefusesWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  Sequential model;
  define(model);
  std::ofstream(folder / "text") << "no checkpoint";
  expect_throws<CheckpointError>([&] { load_weights(folder / "text", model); }, folder / "text");
  expect_throws<CheckpointError>([&] { load_weights(folder / "nothing", model); },
                                 folder / "nothing");
}

TEST(ModelFile, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  Sequential model;
  define(model);
  expect_throws<StateError>([&] { save_model(folder / "absent/model.h5", model); },
                            folder / "absent/model.h5");
}

}  // namespace
}  // namespace lacuna::model_file_test
