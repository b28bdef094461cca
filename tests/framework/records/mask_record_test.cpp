// Masks recorded, drawn, written and read back.
#include "lacuna/framework/records/mask_record.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/image.hpp"
#include "temporary_folder.h"

namespace lacuna::mask_record_test {
namespace {

VisitPositions visiting(const std::vector<int64_t>& flat) {
  return [flat](const std::function<void(int64_t)>& take) {
    for (const int64_t position : flat) take(position);
  };
}

MaskRecord small_mask() {
  return record_mask("fc.weight", Shape{3, 5}, visiting({0, 4, 7, 14}), MaskDetail::Positions);
}

TEST(MaskRecord, CountsTheNonzerosOfEachRow) {
  const MaskRecord mask = small_mask();
  EXPECT_EQ(mask.nnz, 4);
  EXPECT_EQ(mask.fan_in, (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(mask.bits, (std::vector<uint8_t>{0b10010001, 0b01000000}));
}

TEST(MaskRecord, KeepsDensitiesOfTilesWhereBitsWouldBeTooMany) {
  std::vector<int64_t> first_row(200);
  std::iota(first_row.begin(), first_row.end(), 0);
  const MaskRecord mask = record_mask("w", Shape{129, 200}, visiting(first_row), MaskDetail::Tiles);
  EXPECT_EQ(mask.tile_rows, 2);
  EXPECT_EQ(mask.tile_columns, 2);
  ASSERT_EQ(mask.tiles.size(), 65u * 100u);
  EXPECT_EQ(mask.tiles.front(), 0.5F);
  EXPECT_EQ(mask.tiles.back(), 0.0F);
  EXPECT_EQ(mask.fan_in[0], 200);
  EXPECT_TRUE(mask.bits.empty());
}

TEST(MaskPicture, HasADarkPixelForEachPosition) {
  const TemporaryFolder folder;
  const MaskPicture picture = picture_of(small_mask(), 16);
  EXPECT_EQ(picture.width, 5);
  EXPECT_EQ(picture.height, 3);
  const std::string path = folder.write("mask.png", picture.png);
  const Image image = read_image(path);
  ASSERT_EQ(image.width, 5);
  ASSERT_EQ(image.height, 3);
  for (int64_t i = 0; i < 15; ++i) {
    const bool is_set = i == 0 || i == 4 || i == 7 || i == 14;
    EXPECT_EQ(image.pixels[static_cast<size_t>(i * image.channels)], is_set ? 15 : 255) << i;
  }
}

TEST(MaskPicture, TakesTilesTogetherSoThatNoSideIsTooLong) {
  const MaskPicture picture = picture_of(small_mask(), 2);
  EXPECT_EQ(picture.width, 2);
  EXPECT_EQ(picture.height, 2);
  EXPECT_EQ(picture.tile_rows, 2);
  EXPECT_EQ(picture.tile_columns, 3);
}

TEST(MaskFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const MaskRecord bits = small_mask();
  const MaskRecord tiles =
      record_mask("huge.weight", Shape{300, 7}, visiting({1, 2, 2099}), MaskDetail::Tiles);
  write_masks(folder / "step-7.h5", 7, {bits, tiles});
  EXPECT_EQ(listing(folder.path()), "step-7.h5");
  const StepMasks read = read_masks(folder / "step-7.h5");
  EXPECT_EQ(read.step, 7);
  ASSERT_EQ(read.masks.size(), 2u);
  EXPECT_EQ(read.masks[0].name, "fc.weight");
  EXPECT_EQ(read.masks[0].shape, bits.shape);
  EXPECT_EQ(read.masks[0].bits, bits.bits);
  EXPECT_EQ(read.masks[0].fan_in, bits.fan_in);
  EXPECT_EQ(read.masks[1].tiles, tiles.tiles);
  EXPECT_EQ(read.masks[1].fan_in, tiles.fan_in);
  EXPECT_EQ(read.masks[1].nnz, 3);
  EXPECT_EQ(read.masks[1].tile_rows, 3);
}

TEST(MaskFile, IsRefusedWhenAByteIsDamaged) {
  const TemporaryFolder folder;
  write_masks(folder / "masks.h5", 0, {small_mask()});
  std::string bytes = read_text(folder / "masks.h5");
  bytes[bytes.size() / 2] ^= 1;
  write_text(folder / "masks.h5", bytes);
  EXPECT_THROW(read_masks(folder / "masks.h5"), CheckpointError);
  write_text(folder / "masks.h5", bytes.substr(0, 700));
  EXPECT_THROW(read_masks(folder / "masks.h5"), CheckpointError);
}

}  // namespace
}  // namespace lacuna::mask_record_test
