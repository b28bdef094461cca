#include "lacuna/framework/data/formats/cifar_records.hpp"

#include <gmock/gmock.h>

#include <array>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::cifar_records_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kOneLabel = {CifarLabel{"label", 10}};
constexpr std::array kTwoLabels = {CifarLabel{"coarse label", 20}, CifarLabel{"fine label", 100}};

std::string record(const std::string& labels, char pixel) {
  return labels + std::string(static_cast<size_t>(kCifarPixels), pixel);
}

std::string error(const std::string& path) {
  return message_of<DataError>([&] {
    CifarRecords records;
    append_cifar_records(path, kOneLabel, 0, records);
  });
}

TEST(CifarRecords, AppendsLabelsAndPixels) {
  const TemporaryFolder folder;
  CifarRecords records;
  EXPECT_EQ(append_cifar_records(folder.write("a", record("\7", 'a') + record("\1", 'b')),
                                 kOneLabel, 0, records),
            2);
  EXPECT_EQ(append_cifar_records(folder.write("b", record("\11", 'c')), kOneLabel, 0, records), 1);
  EXPECT_EQ(records.size(), 3);
  EXPECT_THAT(records.labels, ElementsAre(7, 1, 9));
  ASSERT_EQ(records.pixels.size(), static_cast<size_t>(3 * kCifarPixels));
  EXPECT_EQ(records.pixels[static_cast<size_t>(kCifarPixels) - 1], 'a');
  EXPECT_EQ(records.pixels[static_cast<size_t>(kCifarPixels)], 'b');
  EXPECT_EQ(records.pixels.back(), 'c');
}

TEST(CifarRecords, KeepsTheLabelAskedFor) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", record("\23\143", 'a'));
  for (const size_t label : {size_t{0}, size_t{1}}) {
    CifarRecords records;
    append_cifar_records(path, kTwoLabels, label, records);
    EXPECT_THAT(records.labels, ElementsAre(label == 0 ? 19 : 99));
  }
}

TEST(CifarRecords, RefusesEveryLengthThatIsNoNumberOfRecords) {
  const TemporaryFolder folder;
  const std::string whole = record("\1", 'a') + record("\2", 'b');
  EXPECT_EQ(error(folder.write("cut.bin", "")),
            folder / "cut.bin" +
                ": truncated, or another kind of file: expected a whole number of records of 3073 "
                "bytes (1 of labels, 3072 of pixels), found 0 records and 0 bytes");
  for (const size_t length : {1ul, 3072ul, 3074ul, 6145ul}) {
    EXPECT_THAT(error(folder.write("cut.bin", whole.substr(0, length))),
                HasSubstr("found " + std::to_string(length / 3073) + " records and " +
                          std::to_string(length % 3073) + " bytes"));
  }
  EXPECT_THAT(error(folder.write("cut.bin", whole + "x")),
              HasSubstr("found 2 records and 1 bytes"));
  EXPECT_THAT(error(folder / "missing.bin"), HasSubstr("missing.bin: cannot be opened"));
}

TEST(CifarRecords, RefusesALabelOutOfRange) {
  const TemporaryFolder folder;
  EXPECT_EQ(error(folder.write("a.bin", record("\1", 'a') + record("\12", 'b'))),
            folder / "a.bin" + ": the label 10 of record 1 is outside of [0, 10)");
  CifarRecords records;
  EXPECT_THAT(message_of<DataError>([&] {
                append_cifar_records(folder.write("b.bin", record(std::string("\24\0", 2), 'a')),
                                     kTwoLabels, 1, records);
              }),
              HasSubstr("b.bin: the coarse label 20 of record 0 is outside of [0, 20)"));
}

}  // namespace
}  // namespace lacuna::cifar_records_test
