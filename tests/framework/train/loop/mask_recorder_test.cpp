// When masks are kept, and in what detail.
#include "lacuna/framework/train/loop/mask_recorder.hpp"

#include <gtest/gtest.h>

#include "framework/train/tiny_run.h"
#include "lacuna/framework/io/yaml.h"
#include "temporary_folder.h"

namespace lacuna::mask_recorder_test {
namespace {

std::unique_ptr<Experiment> tiny(const std::string& sparsity) {
  Config config = parse_yaml(kTinyRun, "run.yaml");
  if (!sparsity.empty()) apply_override(config, "sparsity=" + sparsity);
  return build_experiment(config);
}

TEST(MaskRecorder, IsDueAtTheStartTheQuartersAndTheEnd) {
  const TemporaryFolder folder;
  const auto experiment = tiny("{algorithm: static, sparsity: 0.5}");
  const MaskRecorder recorder(*experiment, folder.path());
  std::vector<int64_t> due;
  for (int64_t step = 0; step <= 18; ++step) {
    if (recorder.is_due(step)) due.push_back(step);
  }
  EXPECT_EQ(due, (std::vector<int64_t>{0, 4, 9, 13, 18}));
}

TEST(MaskRecorder, WritesTheMasksOfTheParametersInChargeAndNothingOfADenseRun) {
  const TemporaryFolder folder;
  const auto dense = tiny("");
  EXPECT_EQ(MaskRecorder(*dense, folder.path()).write(0), std::nullopt);
  EXPECT_EQ(listing(folder.path()), "");
  const auto sparse = tiny("{algorithm: static, sparsity: 0.5}");
  const auto file = MaskRecorder(*sparse, folder.path()).write(3);
  ASSERT_TRUE(file);
  const StepMasks read = read_masks(*file);
  EXPECT_EQ(read.step, 3);
  ASSERT_EQ(read.masks.size(), sparse->sparsity->parameters().size());
  for (const MaskRecord& mask : read.masks) {
    EXPECT_EQ(mask.nnz, mask.shape.numel() / 2) << mask.name;
  }
}

TEST(MaskRecorder, RemovesWhatComesAfterTheStepThatARunGoesOnFrom) {
  const TemporaryFolder folder;
  const auto experiment = tiny("{algorithm: static, sparsity: 0.5}");
  const MaskRecorder recorder(*experiment, folder.path());
  for (const int64_t step : {0, 4, 9}) recorder.write(step);
  recorder.go_on_from(4);
  EXPECT_EQ(listing(folder / "masks"), "step-0000000000.h5 step-0000000004.h5");
}

// Five files of 12.8 MB make 64 MB: 102.4 million positions.
TEST(MaskRecorder, KeepsBitsFromTheSmallestParameterOnWhileTheyFit) {
  using enum MaskDetail;
  EXPECT_EQ(choose_mask_details({100'000'000, 10, 2'000'000}),
            (std::vector<MaskDetail>{Positions, Positions, Positions}));
  EXPECT_EQ(choose_mask_details({100'000'000, 10, 3'000'000}),
            (std::vector<MaskDetail>{Tiles, Positions, Positions}));
  EXPECT_EQ(choose_mask_details({200'000'000, 300'000'000}),
            (std::vector<MaskDetail>{Tiles, Tiles}));
  EXPECT_TRUE(choose_mask_details({}).empty());
}

}  // namespace
}  // namespace lacuna::mask_recorder_test
