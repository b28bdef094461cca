#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "paths.h"
#include "temporary_folder.h"

namespace lacuna::hdf5_probe_test {
namespace {

using testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A file, and how often it was read: each child adds a line to another file.
class Probed : public testing::Test {
 private:
  TemporaryFolder folder_;  // before what stands in it

 protected:
  const std::string path_ = folder_.write("file", "bytes");

  std::string probe(const std::function<void()>& read, const std::string& purpose = "test") {
    return message_of([&] {
      probe_hdf5({.path = path_, .purpose = purpose}, [&] {
        std::ofstream(folder_ / "reads", std::ios::app) << "x";
        read();
      });
    });
  }
  size_t reads() const { return read_text(folder_ / "reads").size(); }
};

TEST_F(Probed, ACrashIsAnErrorThatNamesTheSignal) {
  EXPECT_EQ(probe([] { std::raise(SIGSEGV); }),
            "'" + path_ + "' could not be read: the HDF5 library crashed on it (signal 11)");
  EXPECT_EQ(probe([] { std::abort(); }),
            "'" + path_ + "' could not be read: the HDF5 library crashed on it (signal 6)");
  EXPECT_EQ(reads(), 2u);  // what crashed is never taken for good
}

TEST_F(Probed, WhatNeverEndsIsEnded) {
  EXPECT_LT(probe_seconds(0), 10.0);
  EXPECT_GT(probe_seconds(1'000'000'000), 1000.0);
  EXPECT_EQ(
      probe([] {
        for (volatile bool goes_on = true; goes_on;) {
        }
      }),
      "'" + path_ + "' could not be read: the HDF5 library did not finish reading it in " + "3 s");
}

TEST_F(Probed, AnErrorOfTheChildIsThrownHere) {
  EXPECT_EQ(probe([] { throw DataError("file: x: expected numbers"); }),
            "file: x: expected numbers");
}

TEST_F(Probed, AGoodFileIsReadOnceForEachPurposeUntilItChanges) {
  EXPECT_EQ(probe([] {}), "no error");
  EXPECT_EQ(probe([] {}), "no error");
  EXPECT_EQ(reads(), 1u);
  EXPECT_EQ(probe([] {}, "another"), "no error");
  EXPECT_EQ(reads(), 2u);
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_EQ(probe([] {}), "no error");
  EXPECT_EQ(reads(), 3u);
  trust_hdf5(path_);
  std::ofstream(path_, std::ios::app) << "more";
  trust_hdf5(path_);
  EXPECT_EQ(probe([] {}, "a third"), "no error");
  EXPECT_EQ(reads(), 3u);
}

TEST_F(Probed, ThreadsOfTheProgramDoNotDisturbTheChild) {
  const int before = num_threads();
  set_num_threads(4);
  std::atomic<int> blocks{0};
  const auto work = [&] {
    parallel_for(1000, 1,
                 [&](int64_t begin, int64_t end) { blocks += static_cast<int>(end - begin); });
  };
  work();  // the threads are there from now on
  EXPECT_EQ(probe([&] {
              blocks = 0;
              work();
              if (blocks != 1000) throw DataError("not all blocks ran");
            }),
            "no error");
  set_num_threads(before);
}

TEST_F(Probed, ChildrenThatNobodyWaitsForAreUnderstoodAllTheSame) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(probe([] {}), "no error");
  EXPECT_EQ(probe([] { std::raise(SIGSEGV); }, "another"),
            "'" + path_ + "' could not be read: the HDF5 library crashed on it");
  std::signal(SIGCHLD, before);
}

// On which HDF5 1.10.8 crashes, and reads without end: found by fuzzing.
TEST(Hdf5Probe, SealedFilesThatCrashTheLibraryAreErrors) {
  const TemporaryFolder folder;
  for (const std::string name : {"hdf5_crash", "hdf5_endless"}) {
    const std::string content =
        read_text(std::string(kSourceFolder) + "/fuzz/corpus/checkpoint/" + name);
    ASSERT_NE(content, "");
    const std::string path =
        folder.write(name, std::string(static_cast<size_t>(kSealBytes), '\0') + content);
    seal_file(path, kCheckpointFormat);
    EXPECT_THAT(message_of([&] { read_checkpoint(path); }),
                HasSubstr("the checkpoint '" + path + "' cannot be used: "));
    EXPECT_THAT(message_of([&] { CheckpointFile(path).read_config(); }),
                HasSubstr("the checkpoint '" + path + "' cannot be used: "));
  }
}

}  // namespace
}  // namespace lacuna::hdf5_probe_test
