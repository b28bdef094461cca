// The plugin of MPI: what the program does with one that is not its own.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "paths.h"
#include "temporary_folder.h"

namespace lacuna::plugin_test {
namespace {

namespace fs = std::filesystem;

// A library beside the program that has the plugin's name and none of its functions.
TEST(Plugin, OfAnotherProgramIsPassedOver) {
  const TemporaryFolder folder;
  const std::string program = folder / "lacuna";
  fs::copy_file(kProgram, program);
  Dl_info library{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&crc32), &library), 0);
  ASSERT_NE(fs::canonical(library.dli_fname), fs::canonical("/proc/self/exe"));
  fs::copy_file(fs::canonical(library.dli_fname), folder / "liblacuna_mpi.so");

  FILE* pipe = ::popen((program + " info").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) text += line.data();
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_THAT(text, testing::HasSubstr("\nMPI "));
}

}  // namespace
}  // namespace lacuna::plugin_test
