#include "lacuna/framework/io/storage/file_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/io/file_size_limit.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "temporary_folder.h"

namespace lacuna::file_system_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const StateError& error) {
    return error.what();
  }
  return "no error";
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A pipe or a device is not replaced by a file.
TEST(FileReplacement, LeavesWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { write_file_atomically(pipe, "text"); }),
            "cannot write '" + pipe + "': it is a pipe, not a file");
  struct stat facts {};
  ASSERT_EQ(::lstat(pipe.c_str(), &facts), 0);
  EXPECT_TRUE(S_ISFIFO(facts.st_mode));
  std::filesystem::create_symlink("/dev/full", folder / "full");
  EXPECT_THAT(message_of([&] { write_file_atomically(folder / "full", "text"); }),
              HasSubstr("it is a device, not a file"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full"));
}

// By its own name, and not that of the file beside it.
TEST(FileReplacement, NamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "no/where/a.txt";
  EXPECT_EQ(message_of([&] { write_file_atomically(path, "text"); }),
            "cannot write '" + path + "': No such file or directory");
}

TEST(FolderReplacement, IsThereWholeOrNotAtAll) {
  const TemporaryFolder folder;
  {
    const FolderReplacement left(folder / "a");
    write_file_atomically(left.temporary_path() + "/f", "half");
  }
  EXPECT_THAT(folder.names(), ElementsAre());
  for (const char* text : {"first", "second"}) {
    FolderReplacement whole(folder / "a/");
    write_file_atomically(whole.temporary_path() + "/f", text);
    whole.commit();
    EXPECT_EQ(content(folder / "a/f"), text);
    EXPECT_THAT(folder.names(), ElementsAre("a"));
  }
  write_file_atomically(folder / "file", "mine");
  FolderReplacement onto_file(folder / "file");
  EXPECT_THAT(message_of([&] { onto_file.commit(); }), HasSubstr("file"));
  EXPECT_EQ(content(folder / "file"), "mine");
  EXPECT_THAT(message_of([] { FolderReplacement("/"); }), HasSubstr("does not name a new folder"));
}

TEST(FolderReplacement, OfANewFolderHarmsNothingThatIsThere) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  const auto write = [&](const std::function<void()>& meanwhile) {
    FolderReplacement whole(path);
    write_file_atomically(whole.temporary_path() + "/f", "new");
    meanwhile();
    whole.commit_new();
  };
  const auto refused = HasSubstr("'" + path + "': another process has written there");
  EXPECT_THAT(message_of([&] {
                write([&] {
                  std::filesystem::create_directory(path);
                  write_file_atomically(path + "/mine", "mine");
                });
              }),
              refused);
  EXPECT_EQ(content(path + "/mine"), "mine");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  std::filesystem::remove_all(path);
  EXPECT_THAT(message_of([&] { write([&] { std::ofstream(path) << "file"; }); }), refused);
  EXPECT_EQ(content(path), "file");
  std::filesystem::remove(path);
  {  // a run that is about to begin
    std::filesystem::create_directory(path);
    const FolderLock lock(path);
    EXPECT_THAT(message_of([&] { write([] {}); }), refused);
  }
  const FolderReplacement other(path);
  EXPECT_EQ(other.in_place("'" + other.temporary_path() + "/f', " + other.temporary_path()),
            "'" + path + "/f', " + path);
  write([&] { std::filesystem::create_directories(path); });
  EXPECT_EQ(content(path + "/f"), "new");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(FolderReplacement, FollowsALinkToAFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "disk/there");
  std::filesystem::create_symlink(folder / "disk/there", folder / "link");
  for (const bool is_new : {true, false}) {
    FolderReplacement whole(folder / "link/");
    write_file_atomically(whole.temporary_path() + "/f", is_new ? "new" : "other");
    EXPECT_THAT(folder.names(), ElementsAre("disk", "link"));
    is_new ? whole.commit_new() : whole.commit();
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_EQ(content(folder / "disk/there/f"), is_new ? "new" : "other");
  }
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", "first");
  write_file_atomically(folder / "a.json", "second\n");
  EXPECT_EQ(content(folder / "a.json"), "second\n");
  EXPECT_THAT(folder.names(), ElementsAre("a.json"));
}

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", "first");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    message = message_of([&] { write_file_atomically(folder / "a.json", std::string(5000, 'x')); });
  }
  EXPECT_EQ(message, "cannot write '" + folder / "a.json" + "': File too large");
  EXPECT_EQ(content(folder / "a.json"), "first");
  EXPECT_THAT(folder.names(), ElementsAre("a.json"));
}

TEST(WriteFileAtomically, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { write_file_atomically(folder / "none/a", "x"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(message_of([&] { write_file_atomically(folder.path() + "/", "x"); }),
              HasSubstr("it does not name a file"));
  std::filesystem::create_directory(folder / "inner");
  EXPECT_EQ(message_of([&] { write_file_atomically(folder / "inner", "x"); }),
            "cannot write '" + folder / "inner" + "': Is a directory");
  EXPECT_THAT(folder.names(), ElementsAre("inner"));
}

TEST(RemoveTemporaryFiles, TakesOnlyThose) {
  const TemporaryFolder folder;
  for (const char* name :
       {".a.h5.tmp-12", ".b.tmp-9999", ".a.tmp-", ".a.tmp-1x", "a.tmp-1", ".a"}) {
    std::ofstream(folder / name) << "x";
  }
  EXPECT_EQ(remove_temporary_files(folder.path()), 2);
  EXPECT_THAT(folder.names(), UnorderedElementsAre(".a.tmp-", ".a.tmp-1x", "a.tmp-1", ".a"));
  EXPECT_EQ(remove_temporary_files(folder / "none"), 0);
}

TEST(TruncateFile, CutsAndRefusesToGrow) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "12345");
  truncate_file(folder / "a", 3);
  truncate_file(folder / "a", 3);
  EXPECT_EQ(content(folder / "a"), "123");
  EXPECT_EQ(message_of([&] { truncate_file(folder / "a", 4); }),
            "cannot cut '" + folder / "a" + "' back to 4 bytes: it has 3");
  EXPECT_THAT(message_of([&] { truncate_file(folder / "b", 0); }),
              HasSubstr("No such file or directory"));
}

TEST(JsonLines, AppendsALineAtOnce) {
  const TemporaryFolder folder;
  JsonLines lines(folder / "m.jsonl");
  EXPECT_EQ(lines.size(), 0);
  lines.write(Config::map({{"step", Config(1)}, {"text", Config("a\nb")}}));
  EXPECT_EQ(content(folder / "m.jsonl"), "{\"step\": 1, \"text\": \"a\\nb\"}\n");
  EXPECT_EQ(lines.size(), static_cast<int64_t>(content(folder / "m.jsonl").size()));
  JsonLines more(folder / "m.jsonl");
  EXPECT_EQ(more.size(), lines.size());
  more.write(Config::map());
  EXPECT_THAT(content(folder / "m.jsonl"), testing::EndsWith("}\n{}\n"));
}

TEST(JsonLines, TakesBackTheBeginningOfALineThatDoesNotFit) {
  const TemporaryFolder folder;
  JsonLines lines(folder / "m.jsonl");
  lines.write(Config::map({{"step", Config(1)}}));
  const std::string before = content(folder / "m.jsonl");
  std::string message;
  {
    const FileSizeLimit limit(20);
    message = message_of([&] {
      lines.write(Config::map({{"text", Config(std::string(100, 'x'))}}));
    });
  }
  EXPECT_EQ(message, "cannot write '" + folder / "m.jsonl" + "': File too large");
  EXPECT_EQ(content(folder / "m.jsonl"), before);
  lines.write(Config::map({{"step", Config(2)}}));
  EXPECT_EQ(content(folder / "m.jsonl"), before + "{\"step\": 2}\n");
}

TEST(JsonLines, SaysWhyItCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { JsonLines(folder / "none/m.jsonl"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(message_of([&] { JsonLines(folder.path()); }), HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace lacuna::file_system_test
