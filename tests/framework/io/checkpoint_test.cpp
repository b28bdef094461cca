#include "lacuna/framework/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "framework/io/file_size_limit.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "paths.h"
#include "state_differences.h"
#include "temporary_folder.h"

namespace lacuna::checkpoint_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class ErrorType, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "no error";
}

std::string read_message(const std::string& path) {
  return message_of<CheckpointError>([&] { read_checkpoint(path); });
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void set_content(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

Checkpoint sample(int64_t step = 1234) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.config_yaml = "model:\n  - linear: {out_features: 10}\n# ü\n";
  StateDict& state = checkpoint.state;
  std::vector<float> values(37 * 11);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  values[0] = -0.0f;
  values[1] = std::numeric_limits<float>::quiet_NaN();
  values[2] = std::numeric_limits<float>::denorm_min();
  std::vector<uint8_t> mask(values.size());
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 7 == 0;
  state.set("model/fc1.weight", Tensor::from({37, 11}, values));
  state.set("model/fc1.weight_mask", ByteArray{{37, 11}, mask});
  state.set("optimizer/fc1.weight/exp_avg", Tensor::zeros({37, 11}));
  state.set("optimizer/fc1.weight/step", int64_t{-5});
  state.set("trainer/best", 0.1 + 0.2);
  state.set("trainer/scalar", Tensor::scalar(3));
  state.set("trainer/none", Tensor::empty({0, 3}));
  state.set("trainer/byte", ByteArray{{}, {200}});
  state.set("trainer/no_bytes", ByteArray{{0}, {}});
  state.set("trainer/int8", SignedBytes{{2, 2}, {-128, 127, 0, -1}});
  state.set("loader/order", std::vector<int64_t>{3, 1, std::numeric_limits<int64_t>::min()});
  state.set("loader/one", std::vector<int64_t>{7});
  state.set("loader/nothing", std::vector<int64_t>{});
  state.set("loader/indices", std::vector<uint32_t>{4, 0, 0xffffffffu});
  state.set("loader/no_indices", std::vector<uint32_t>{});
  state.set("random/name", std::string("counter\n'based'"));
  state.set("random/empty", std::string());
  return checkpoint;
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.config_yaml, b.config_yaml);
  EXPECT_EQ(a.lacuna_version, b.lacuna_version);
  EXPECT_EQ(a.arithmetic_revision, b.arithmetic_revision);
  EXPECT_THAT(differences(a.state, b.state), IsEmpty());
}

TEST(Checkpoint, ComesBackExactly) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  expect_same(read_checkpoint(folder / "a.h5"), sample());
  EXPECT_EQ(read_checkpoint(folder / "a.h5").lacuna_version, kVersion);
  EXPECT_THAT(folder.names(), ElementsAre("a.h5"));
}

TEST(Checkpoint, AnEmptyStateComesBackToo) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", {});
  expect_same(read_checkpoint(folder / "a.h5"), {});
}

TEST(Checkpoint, KeepsTheRevisionOfItsArithmetic) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  for (const std::optional<int64_t> revision :
       {std::optional<int64_t>(), std::optional<int64_t>(0), std::optional<int64_t>(7)}) {
    Checkpoint checkpoint = sample();
    checkpoint.arithmetic_revision = revision;
    write_checkpoint(path, checkpoint);
    EXPECT_EQ(read_checkpoint(path).arithmetic_revision, revision);
  }
  Checkpoint wrong = sample();
  wrong.arithmetic_revision = -1;
  write_checkpoint(path, wrong);
  EXPECT_THAT([&] { read_checkpoint(path); },
              testing::ThrowsMessage<CheckpointError>(testing::HasSubstr(
                  "its attribute 'arithmetic_revision' is -1, expected a count")));
}

TEST(Checkpoint, SameStateGivesSameBytes) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  write_checkpoint(folder / "b.h5", sample());
  EXPECT_EQ(content(folder / "a.h5"), content(folder / "b.h5"));
}

// As others see it who know HDF5 and the documentation, but not our reader.
TEST(Checkpoint, IsAPlainHdf5File) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  EXPECT_THAT(content(folder / "a.h5"),
              testing::StartsWith("lacuna checkpoint\nformat 2\nbytes 0"));
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(file.children("/"), ElementsAre("loader", "model", "optimizer", "random", "trainer"));
  EXPECT_THAT(file.children("model"), ElementsAre("fc1.weight", "fc1.weight_mask"));
  EXPECT_TRUE(file.is_uint8("/model/fc1.weight_mask"));
  EXPECT_EQ(file.element_bytes("/model/fc1.weight"), 4u);
  EXPECT_EQ(file.attribute_integer("/", "format_version"), kCheckpointFormat);
  EXPECT_EQ(file.attribute_text("/", "lacuna_version"), kVersion);
  EXPECT_EQ(file.attribute_integer("/", "arithmetic_revision"), kArithmeticRevision);
  EXPECT_EQ(file.attribute_integer("/", "step"), 1234);
  EXPECT_EQ(file.attribute_text("/", "config"), sample().config_yaml);
}

TEST(Checkpoint, ReplacesAnOlderOneOfItsName) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample(1));
  write_checkpoint(folder / "a.h5", sample(2));
  EXPECT_EQ(read_checkpoint(folder / "a.h5").step, 2);
}

TEST(Checkpoint, RefusesWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_message(folder / "none.h5"),
            "cannot read the checkpoint '" + folder / "none.h5" + "': No such file or directory");
  EXPECT_EQ(read_message(folder.path()),
            "cannot read the checkpoint '" + folder.path() + "': Is a directory");
  set_content(folder / "empty.h5", "");
  EXPECT_THAT(read_message(folder / "empty.h5/a.h5"), HasSubstr("a.h5': Not a directory"));
  EXPECT_THAT(read_message(folder / "empty.h5"), HasSubstr("is not a checkpoint: it is empty"));
  set_content(folder / "text.h5", std::string(1000, 'x'));
  EXPECT_THAT(read_message(folder / "text.h5"),
              HasSubstr("it does not begin with 'lacuna checkpoint'"));
  EXPECT_THAT(read_message(std::string(kSourceFolder) + "/tests/golden/schedules.h5"),
              HasSubstr("is an HDF5 file, but not a lacuna checkpoint"));
}

TEST(Checkpoint, RefusesANewerFormatAndReadsOlderOnes) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  seal_file(folder / "a.h5", 3);
  EXPECT_EQ(
      read_message(folder / "a.h5"),
      "'" + folder / "a.h5" +
          "' was written in format 3, but this version of lacuna reads up to 2: use a newer one");
  for (const int64_t format : {int64_t{1}, kCheckpointFormat}) {
    seal_file(folder / "a.h5", format);
    expect_same(read_checkpoint(folder / "a.h5"), sample());
  }
}

TEST(Checkpoint, KeepsTheFormatOfItsFile) {
  const TemporaryFolder folder;
  for (const int64_t format : {int64_t{1}, kCheckpointFormat}) {
    Hdf5File file = Hdf5File::create(folder / "a.h5", {.user_block_bytes = kSealBytes});
    file.write_attribute("/", "format_version", format);
    file.write_attribute("/", "lacuna_version", std::string("0.1.0"));
    file.write_attribute("/", "step", int64_t{5});
    file.write_attribute("/", "config", std::string("model: []\n"));
    file.write_attribute("/", "train_seconds", 1.0);
    file.write_attribute("/", "metrics_bytes", int64_t{0});
    file.close();
    seal_file(folder / "a.h5", format);
    EXPECT_EQ(read_checkpoint(folder / "a.h5").format_version, format);
  }
}

TEST(Checkpoint, RefusesSealedFilesWithOtherContent) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "a.h5", {.user_block_bytes = kSealBytes});
  file.close();
  seal_file(folder / "a.h5", kCheckpointFormat);
  EXPECT_THAT(read_message(folder / "a.h5"),
              AllOf(HasSubstr("cannot be used"), HasSubstr("no attribute 'step'")));
  set_content(folder / "b.h5", std::string(2000, 'x'));
  seal_file(folder / "b.h5", kCheckpointFormat);
  EXPECT_THAT(read_message(folder / "b.h5"), HasSubstr("it is not an HDF5 file"));
}

TEST(Checkpoint, RefusesAChangeInAnyByte) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  const std::string whole = content(folder / "a.h5");
  std::mt19937_64 random(2024);
  std::vector<size_t> places = {0, 17, 18, 25, 26, 60, 511, 512, 513, 520, whole.size() - 1};
  while (places.size() < 60) places.push_back(random() % 512);
  while (places.size() < 220) places.push_back(random() % whole.size());
  for (const size_t place : places) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << (random() % 8)));
    set_content(folder / "b.h5", damaged);
    EXPECT_NE(read_message(folder / "b.h5"), "no error") << place;
  }
}

// All of them: the header is read by code with cases, the rest only by the checksum.
TEST(Checkpoint, RefusesAChangeInAnyByteOfTheHeader) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", {});
  std::string header = content(folder / "a.h5").substr(0, 512);
  std::fstream file(folder / "a.h5", std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t place, char byte) {
    file.seekp(static_cast<std::streamoff>(place));
    file.put(byte).flush();
  };
  for (size_t place = 0; place < header.size(); ++place) {
    for (const char other : {'\0', '1', 'A', '\n'}) {
      if (header[place] == other) continue;
      put(place, other);
      EXPECT_NE(message_of<CheckpointError>([&] { CheckpointFile(folder / "a.h5"); }), "no error")
          << place << " " << static_cast<int>(other);
    }
    put(place, header[place]);
  }
  expect_same(read_checkpoint(folder / "a.h5"), {});
}

TEST(Checkpoint, RefusesAnyOtherLength) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  const std::string whole = content(folder / "a.h5");
  std::mt19937_64 random(5);
  std::vector<size_t> lengths = {1, 17, 18, 100, 511, 512, 513, 600, whole.size() - 1};
  while (lengths.size() < 100) lengths.push_back(1 + random() % (whole.size() - 1));
  for (const size_t length : lengths) {
    set_content(folder / "b.h5", whole.substr(0, length));
    EXPECT_THAT(read_message(folder / "b.h5"), HasSubstr("cut off")) << length;
  }
  set_content(folder / "b.h5", whole.substr(0, 700));
  EXPECT_EQ(read_message(folder / "b.h5"), "'" + folder / "b.h5" +
                                               "' is cut off or damaged: expected " +
                                               std::to_string(whole.size()) + " bytes, found 700");
  set_content(folder / "b.h5", whole + "x");
  EXPECT_THAT(read_message(folder / "b.h5"), HasSubstr("cut off or damaged"));
}

TEST(Checkpoint, NamesBothChecksums) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "a.h5", sample());
  std::string damaged = content(folder / "a.h5");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  set_content(folder / "a.h5", damaged);
  EXPECT_THAT(read_message(folder / "a.h5"),
              testing::ContainsRegex("is damaged: expected the checksum [0-9a-f]{8}, found "
                                     "[0-9a-f]{8}"));
}

TEST(Checkpoint, AFullDiskLeavesThePreviousOneAndNothingElse) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "whole.h5", sample(2));
  write_checkpoint(folder / "a.h5", sample(1));
  const std::string before = content(folder / "a.h5");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(folder / "whole.h5"));
  std::vector<int64_t> limits = {1, 100, 512, 513, size - 1};
  for (int64_t bytes = 700; bytes < size; bytes += 997) limits.push_back(bytes);
  for (const int64_t bytes : limits) {
    std::string message;
    {
      const FileSizeLimit limit(bytes);
      message = message_of<StateError>([&] { write_checkpoint(folder / "a.h5", sample(2)); });
    }
    EXPECT_THAT(message,
                AllOf(HasSubstr("the checkpoint '" + folder / "a.h5" + "' was not written: "),
                      HasSubstr("File too large")))
        << bytes;
    EXPECT_EQ(content(folder / "a.h5"), before);
    EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("a.h5", "whole.h5"));
  }
  write_checkpoint(folder / "a.h5", sample(2));
  EXPECT_EQ(content(folder / "a.h5"), content(folder / "whole.h5"));
}

TEST(Checkpoint, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& name, const StateDict::Value& value) {
    Checkpoint checkpoint;
    checkpoint.state.set("a", 1.0);
    checkpoint.state.set(name, value);
    return message_of<StateError>([&] { write_checkpoint(folder / "c.h5", checkpoint); });
  };
  EXPECT_THAT(
      message_of<StateError>([&] { write_checkpoint(folder / "none/a.h5", {}); }),
      AllOf(HasSubstr("none/a.h5' was not written: "), HasSubstr("No such file or directory")));
  EXPECT_THAT(message("b", Tensor()), HasSubstr("b: the tensor is undefined"));
  EXPECT_THAT(message("b", ByteArray{{3}, {1}}), HasSubstr("b: 1 values for the shape [3]"));
  EXPECT_THAT(message("b", std::string("\0", 1)), HasSubstr("b: text with a zero byte"));
  EXPECT_THAT(message("a/b", 1.0), HasSubstr("a/b: "));
  for (const char* name : {"", "/", "/b", "b/", "b//c", "b/./c", "."}) {
    EXPECT_THAT(message(name, 1.0), HasSubstr("has an empty part or a lone dot")) << name;
  }
  EXPECT_THAT(folder.names(), IsEmpty());
  std::filesystem::create_directory(folder / "c.h5");
  EXPECT_THAT(message("b", 1.0), HasSubstr("Is a directory"));
  EXPECT_THAT(folder.names(), ElementsAre("c.h5"));
}

// A fault is read from the environment once, so each wants a process of its own: this program,
// which then does nothing but write.
struct WriterProcess {
  WriterProcess() {
    const char* path = std::getenv("LACUNA_TEST_WRITE_CHECKPOINT");
    if (path == nullptr) return;
    write_checkpoint(path, sample(2));
    ::_exit(0);
  }
} const writer_process;

int signal_of_writing(const std::string& path, const std::string& fault) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("LACUNA_TEST_WRITE_CHECKPOINT", path.c_str(), 1);
    ::setenv("LACUNA_FAULT", fault.c_str(), 1);
    ::execl("/proc/self/exe", "io_tests", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

TEST(Checkpoint, AProcessKilledWhileWritingLeavesAGoodOne) {
  for (const char* point : {"before_write", "half_written", "before_rename", "after_rename"}) {
    const TemporaryFolder folder;
    write_checkpoint(folder / "a.h5", sample(1));
    const std::string name = "checkpoint." + std::string(point);
    EXPECT_EQ(signal_of_writing(folder / "a.h5", name + ":1"), SIGKILL) << point;
    const bool is_new = std::string(point) == "after_rename";
    expect_same(read_checkpoint(folder / "a.h5"), sample(is_new ? 2 : 1));
    const bool leaves_one = name == "checkpoint.half_written" || name == "checkpoint.before_rename";
    EXPECT_EQ(remove_temporary_files(folder.path()), leaves_one ? 1 : 0) << point;
    EXPECT_EQ(signal_of_writing(folder / "a.h5", name + ":2"), 0) << point;
    expect_same(read_checkpoint(folder / "a.h5"), sample(2));
  }
}

}  // namespace
}  // namespace lacuna::checkpoint_test
