// Each file of a run, saved with every single call to the system failing in turn: what was there
// before is whole, or what is new is; an error names the file and the cause; nothing else is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "faults/write_faults.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/event_file.hpp"
#include "lacuna/framework/records/mask_record.hpp"
#include "state_differences.h"
#include "temporary_folder.h"

namespace lacuna::saved_files_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

Checkpoint numbered(int64_t step) {
  Checkpoint checkpoint{.state = {}, .config_yaml = "model: [flatten]\n", .step = step};
  checkpoint.state.set("model/fc1.weight", Tensor::full(Shape{20, 30}, static_cast<float>(step)));
  checkpoint.state.set("model/fc1.weight_mask", ByteArray{Shape{5}, {1, 0, 1, 1, 0}});
  checkpoint.state.set("trainer/step", step);
  return checkpoint;
}

// Saves with every call failing in turn, once and from then on. `check` gets what the save threw,
// or an empty string.
void fail_everywhere(const TemporaryFolder& folder, const std::function<void()>& prepare,
                     const std::function<void()>& save,
                     const std::function<void(const std::string& thrown)>& check) {
  prepare();
  long calls = 0;
  {
    const WriteFaults counted(folder.path(), 0, FaultLength::Once);
    save();
    calls = WriteFaults::calls();
  }
  ASSERT_GE(calls, 3);
  for (const FaultLength length : {FaultLength::Once, FaultLength::FromThenOn}) {
    for (long at = 1; at <= calls; ++at) {
      prepare();
      std::string thrown;
      {
        const WriteFaults faults(folder.path(), at, length);
        try {
          save();
        } catch (const StateError& error) {
          thrown = error.what();
        }
      }
      SCOPED_TRACE(testing::Message() << "call " << at << " of " << calls << ": "
                                      << WriteFaults::failed() << " -> " << thrown);
      EXPECT_NE(WriteFaults::failed(), "");
      if (!thrown.empty()) {
        EXPECT_THAT(thrown, HasSubstr(folder.path()));
        EXPECT_THAT(thrown, AnyOf(HasSubstr("No space left"), HasSubstr("Input/output error")));
      }
      check(thrown);
    }
  }
}

TEST(WriteFaults, LeaveThePreviousCheckpointOrTheNewOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.h5";
  fail_everywhere(
      folder, [&] { write_checkpoint(path, numbered(1)); },
      [&] { write_checkpoint(path, numbered(2)); },
      [&](const std::string& thrown) {
        const Checkpoint found = read_checkpoint(path);
        EXPECT_THAT(found.step, AnyOf(1, 2));
        EXPECT_TRUE(!thrown.empty() || found.step == 2);
        EXPECT_THAT(differences(found.state, numbered(found.step).state), testing::IsEmpty());
        EXPECT_EQ(listing(folder.path()), "step.h5");
      });
}

TEST(WriteFaults, LeaveThePreviousMasksOrTheNewOnes) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.h5";
  const auto save = [&](int64_t step) {
    write_masks(path, step,
                {record_mask(
                    "fc1.weight", Shape{step, 3}, [](const auto& take) { take(1); },
                    MaskDetail::Positions)});
  };
  fail_everywhere(
      folder, [&] { save(1); }, [&] { save(2); },
      [&](const std::string& thrown) {
        const StepMasks found = read_masks(path);
        EXPECT_THAT(found.step, AnyOf(1, 2));
        EXPECT_TRUE(!thrown.empty() || found.step == 2);
        EXPECT_EQ(found.masks.at(0).shape, (Shape{found.step, 3}));
        EXPECT_EQ(listing(folder.path()), "step.h5");
      });
}

// A file system of the network may tell of an error when a file is closed that was only read: the
// HDF5 library's own driver then left something behind that it crashed on as the process ended.
TEST(WriteFaults, OfClosingAFileThatWasReadCrashNothingAtTheEnd) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.h5";
  write_checkpoint(path, numbered(1));
  EXPECT_EXIT(
      {
        const WriteFaults faults(folder.path(), 1, FaultLength::FromThenOn);
        const Checkpoint found = read_checkpoint(path);
        std::exit(found.step == 1 && WriteFaults::failed().starts_with("close ") ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(WriteFaults, LeaveThePreviousTextOrTheNewOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "summary.json";
  fail_everywhere(
      folder, [&] { write_file_atomically(path, "old"); },
      [&] { write_file_atomically(path, "new"); },
      [&](const std::string& thrown) {
        EXPECT_THAT(read_text(path), thrown.empty() ? AnyOf("new", "new") : AnyOf("old", "new"));
        EXPECT_EQ(listing(folder.path()), "summary.json");
      });
}

TEST(WriteFaults, LeaveWholeLinesOfMetrics) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const auto append = [&](int step) { JsonLines(path).write(Config::map({{"step", step}})); };
  fail_everywhere(
      folder,
      [&] {
        std::filesystem::remove(path);
        append(1);
      },
      [&] { append(2); },
      [&](const std::string& thrown) {
        const std::string first = "{\"step\": 1}\n", second = "{\"step\": 2}\n";
        EXPECT_EQ(read_text(path), thrown.empty() ? first + second : first);
      });
}

TEST(WriteFaults, OfEventFilesAreErrors) {
  const TemporaryFolder folder;
  fail_everywhere(
      folder, [] {},
      [&] {
        EventFile events(folder / "events", 1.0);
        events.write(1, 2.0, {{"train/loss", 0.5}});
      },
      [](const std::string& thrown) {
        // Closing it comes last, when all is written.
        EXPECT_TRUE(!thrown.empty() || WriteFaults::failed().starts_with("fclose"));
      });
}

}  // namespace
}  // namespace lacuna::saved_files_test
