#include "lacuna/framework/core/version.h"
#include "paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace lacuna::version_test {
namespace {

TEST(Version, IsThatOfTheCMakeProject) {
  std::ostringstream text;
  text << std::ifstream(std::string(kSourceFolder) + "/CMakeLists.txt").rdbuf();
  EXPECT_THAT(text.str(),
              testing::HasSubstr("project(lacuna VERSION " + std::string(kVersion) + " "));
}

}  // namespace
}  // namespace lacuna::version_test
