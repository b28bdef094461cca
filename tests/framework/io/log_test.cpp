#include "lacuna/framework/io/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/io/file_size_limit.h"
#include "lacuna/framework/core/error.h"
#include "temporary_folder.h"

namespace lacuna::log_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Log : public testing::Test {
 protected:
  ~Log() override { stop_logging(); }
};

TEST_F(Log, IsSilentUntilAsked) {
  testing::internal::CaptureStderr();
  log_error("nobody hears this");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, WritesPlainLinesToTheConsole) {
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Info);
  log_info("step 1 {} %d");
  log_warning("slow");
  log_to_console(LogLevel::Error);
  log_warning("not this");
  log_error("bad");
  log_to_console(LogLevel::Off);
  log_error("nor this");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "step 1 {} %d\nwarning: slow\nerror: bad\n");
}

TEST_F(Log, WritesTimeAndLevelToTheFileAtOnceAndAppends) {
  const TemporaryFolder folder;
  const std::string stamp = "[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+\\.[0-9]+ ";
  log_to_file(folder / "log.txt");
  log_info("one");
  EXPECT_THAT(lines_of(folder / "log.txt"), ElementsAre(MatchesRegex(stamp + "info: one")));
  log_to_file(folder / "log.txt");
  log_warning("two");
  log_error("three");
  EXPECT_THAT(lines_of(folder / "log.txt"),
              ElementsAre(MatchesRegex(stamp + "info: one"), MatchesRegex(stamp + "warning: two"),
                          MatchesRegex(stamp + "error: three")));
}

TEST_F(Log, RefusesAFileItCannotOpen) {
  const TemporaryFolder folder;
  try {
    log_to_file(folder.path());
    ADD_FAILURE();
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write the log '" + folder.path() + "'"));
  }
}

TEST_F(Log, SaysOnceThatTheDiskIsFull) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Error);
  log_to_file(folder / "log.txt");
  {
    // What the console gets is captured in a file too, so the limit leaves room for that.
    const FileSizeLimit limit(2000);
    log_info(std::string(4000, 'x'));
    log_info(std::string(4000, 'x'));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("error: cannot write the log '.*log.txt': .*\n"));
}

TEST_F(Log, OfARunIsNoLink) {
  const TemporaryFolder folder;
  std::ofstream(folder / "precious") << "text";
  std::filesystem::create_symlink(folder / "precious", folder / "log.txt");
  EXPECT_THROW(log_to_file(folder / "log.txt"), StateError);
  EXPECT_EQ(std::filesystem::file_size(folder / "precious"), 4u);
}

}  // namespace
}  // namespace lacuna::log_test
