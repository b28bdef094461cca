#include "lacuna/framework/data/formats/idx.hpp"

#include <gmock/gmock.h>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::idx_test {
namespace {

using test::big_endian;
using test::idx_images;
using test::idx_labels;
using test::message_of;
using test::read_file;
using test::write_gzip;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string image_error(const std::string& path) {
  return message_of<DataError>([&] { read_idx_images(path); });
}
std::string label_error(const std::string& path) {
  return message_of<DataError>([&] { read_idx_labels(path); });
}

TEST(Idx, ReadsPlainAndGzippedFilesAlike) {
  const TemporaryFolder folder;
  const std::string images = idx_images(3, 1, 2, "abcdef"), labels = idx_labels(3, "\2\1\3");
  for (const std::string& path : {folder.write("i", images), write_gzip(folder / "i.gz", images)}) {
    const IdxImages read = read_idx_images(path);
    EXPECT_EQ(read.count, 3);
    EXPECT_EQ(read.rows, 1);
    EXPECT_EQ(read.columns, 2);
    EXPECT_THAT(read.pixels, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  }
  for (const std::string& path : {folder.write("l", labels), write_gzip(folder / "l.gz", labels)}) {
    EXPECT_THAT(read_idx_labels(path), ElementsAre(2, 1, 3));
  }
}

TEST(Idx, ReadsDataLongerThanOnePiece) {
  const TemporaryFolder folder;
  const std::string pixels(3 << 20, 'x');
  const std::string file = idx_images(3 << 10, 32, 32, pixels);
  EXPECT_EQ(read_idx_images(folder.write("i", file)).pixels.size(), pixels.size());
  EXPECT_EQ(read_idx_images(write_gzip(folder / "i.gz", file)).pixels.size(), pixels.size());
}

TEST(Idx, RefusesATruncatedFile) {
  const TemporaryFolder folder;
  const std::string whole = idx_images(3, 1, 2, "abcdef");
  EXPECT_THAT(image_error(folder.write("data", whole.substr(0, whole.size() - 1))),
              AllOf(HasSubstr(folder / "data"),
                    HasSubstr("truncated: expected 6 bytes of data after the header, found 5")));
  EXPECT_THAT(image_error(folder.write("header", whole.substr(0, 10))),
              HasSubstr("truncated: expected 4 bytes of the rows in the header, found 2"));
  EXPECT_THAT(image_error(folder.write("nothing", "")),
              HasSubstr("truncated: expected 4 bytes of the magic number in the header, found 0"));
}

TEST(Idx, RefusesAnotherMagicNumber) {
  const TemporaryFolder folder;
  const std::string labels = folder.write("l", idx_labels(1, "\1"));
  EXPECT_THAT(image_error(labels),
              HasSubstr("wrong magic number: expected 0x00000803 (IDX images), "
                        "found 0x00000801"));
  const std::string images = folder.write("i", idx_images(1, 1, 1, "a"));
  EXPECT_THAT(label_error(images),
              HasSubstr("wrong magic number: expected 0x00000801 (IDX labels), "
                        "found 0x00000803"));
}

TEST(Idx, RefusesBytesAfterTheData) {
  const TemporaryFolder folder;
  const std::string longer = idx_labels(3, "\1\2\3\4");
  EXPECT_THAT(label_error(folder.write("l", longer)),
              HasSubstr("expected the end of the file after 3 bytes of data, found more"));
  EXPECT_THAT(label_error(write_gzip(folder / "l.gz", longer)), HasSubstr("found more"));
}

TEST(Idx, RefusesAnEmptyDataSet) {
  const TemporaryFolder folder;
  EXPECT_THAT(image_error(folder.write("i", idx_images(0, 28, 28, ""))),
              HasSubstr("empty: the header says 0 images"));
  EXPECT_THAT(label_error(folder.write("l", idx_labels(0, ""))),
              HasSubstr("empty: the header says 0 labels"));
}

TEST(Idx, AbsurdHeaderMakesForNoLargeAllocation) {
  const TemporaryFolder folder;
  // 4·10⁹ images of 65535 × 65535 pixels: an attempt to reserve that would throw bad_alloc.
  const std::string path = folder.write("i", idx_images(0xFFFFFFFF, 65535, 65535, "abc"));
  EXPECT_THAT(image_error(path), HasSubstr("truncated: expected 18446181123756261375 bytes"));
  EXPECT_THAT(image_error(folder.write("j", idx_images(1, 0xFFFFFFFF, 1, "abc"))),
              HasSubstr("images of 4294967295 rows and 1 columns; expected 1 to 65535"));
  EXPECT_THAT(image_error(folder.write("k", idx_images(1, 1, 0, ""))),
              HasSubstr("images of 1 rows and 0 columns"));
}

TEST(Idx, RefusesADamagedGzipStream) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>((i * i) % 251);
  const std::string good = read_file(write_gzip(folder / "good.gz", idx_labels(4000, text)));
  const std::string advice = "download the file again";

  EXPECT_THAT(
      label_error(folder.write("cut.gz", good.substr(0, good.size() / 2))),
      AllOf(HasSubstr(folder / "cut.gz"),
            HasSubstr("ends before its data does: the file is truncated"), HasSubstr(advice)));
  EXPECT_THAT(label_error(folder.write("no_trailer.gz", good.substr(0, good.size() - 3))),
              HasSubstr("the file is truncated"));

  std::string flipped = good;
  flipped[good.size() - 6] = static_cast<char>(flipped[good.size() - 6] ^ 1);  // in the checksum
  EXPECT_THAT(label_error(folder.write("sum.gz", flipped)),
              HasSubstr("the gzip stream is damaged (incorrect data check)"));
  EXPECT_THAT(label_error(folder.write("plain.gz", idx_labels(1, "\1"))),
              HasSubstr("the gzip stream is damaged (incorrect header check)"));
  EXPECT_THAT(label_error(folder.write("longer.gz", good + "x")),
              HasSubstr("there are bytes after the end of the gzip stream"));
  EXPECT_THAT(label_error(folder.write("two.gz", good + good)),
              HasSubstr("two.gz: the file has more than one gzip stream; decompress it, and "
                        "compress it again as one"));
}

TEST(Idx, RefusesAFileThatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(image_error(folder / "none"),
              HasSubstr(folder / "none" + ": cannot be opened: No such file"));
  EXPECT_THAT(image_error(folder.path()), HasSubstr("cannot be read: Is a directory"));
}

}  // namespace
}  // namespace lacuna::idx_test
