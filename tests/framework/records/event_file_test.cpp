// Event files byte by byte; tests/report/event_file_test.py reads those of a run.
#include "lacuna/framework/records/event_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::event_file_test {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheChecksumsOfTheStandard) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(descending), 0x113FDB5Cu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

TEST(EventFile, BeginsWithTheVersionOfTheFormat) {
  const TemporaryFolder folder;
  { const EventFile file(folder / "events", 0.0); }
  const std::string bytes = read_text(folder / "events");
  // 8 of length, 4 of checksum, the event (9 of wall time, 2 + 13 of the version), 4 of checksum.
  ASSERT_EQ(bytes.size(), 8u + 4u + 24u + 4u);
  EXPECT_EQ(bytes[0], 24);
  EXPECT_EQ(bytes.substr(12 + 9, 2), std::string("\x1a\x0d"));
  EXPECT_EQ(bytes.substr(12 + 11, 13), "brain.Event:2");
}

TEST(EventFile, NamesThePathWhereItCannotWrite) {
  const TemporaryFolder folder;
  const std::string path = folder / "missing" + "/events";
  try {
    const EventFile file(path, 0.0);
    FAIL() << "wrote into a folder that is not there";
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lacuna::event_file_test
