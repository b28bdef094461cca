// `lacuna help`, `version`, `completion` and the manual page, the scripts in the shells themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "framework/program/process.h"
#include "lacuna/framework/core/version.h"

namespace lacuna::help_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string shell_path(const std::string& shell) {
  for (const char* folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    if (std::filesystem::exists(folder + shell)) return folder + shell;
  }
  return "";
}

// What the script of a shell offers at the end of a line.
class Completion : public testing::Test {
 protected:
  std::vector<std::string> in_shell(const std::string& shell, const std::string& script) {
    const Ended made = run_lacuna({"completion", shell});
    EXPECT_EQ(made.code, 0) << made.err;
    folder_.write("script", made.out);
    const std::string before = shell == "zsh" ? "compdef() {}\n" : "";
    const Ended ended = run_lacuna({"-c", before + "source ./script\n" + script},
                                   {.program = shell_path(shell), .folder = folder_.path()});
    EXPECT_EQ(ended.err, "") << script;
    return lines_of(ended.out);
  }
  // As bash calls the function, with its own rules on where words end.
  std::vector<std::string> bash(const std::string& line) {
    return in_shell("bash", "COMP_LINE='" + line + "'; COMP_POINT=${#COMP_LINE}\n_lacuna\n" +
                                "printf '%s\\n' \"${COMPREPLY[@]}\"");
  }
  std::vector<std::string> zsh(const std::string& words) {
    return in_shell("zsh",
                    "compset() { current=${current#*=} }\ncompadd() { shift; print -l -- $@ }\n"
                    "_describe() { print -l -- ${(P)4} }\n_files() { print files }\n"
                    "words=(lacuna " +
                        words + ")\nCURRENT=$#words\n_lacuna");
  }
  std::vector<std::string> fish(const std::string& line) {
    std::vector<std::string> lines = in_shell("fish", "complete -C '" + line + "'");
    for (std::string& text : lines) text = text.substr(0, text.find('\t'));
    return lines;
  }

  const TemporaryFolder folder_;
};

TEST(HelpCommand, IsTheHelpOfEachCommand) {
  const Ended all = run_lacuna({"help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out, run_lacuna({"--help"}).out);
  EXPECT_THAT(all.out,
              AllOf(HasSubstr("Subcommands:"), HasSubstr("  train "), HasSubstr("  help ")));
  for (const char* command : {"train", "sweep", "help"}) {
    const Ended one = run_lacuna({"help", command});
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, run_lacuna({command, "--help"}).out);
    EXPECT_THAT(one.out, HasSubstr("lacuna " + std::string(command) + " [OPTIONS]"));
  }
  const Ended unknown = run_lacuna({"help", "trian"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "error: help: unknown command 'trian'; did you mean 'train'?\n");
}

TEST(HelpCommand, VersionIsThatOfTheOption) {
  const Ended version = run_lacuna({"version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, std::string("lacuna ") + kVersion + "\n");
  EXPECT_EQ(version.out, run_lacuna({"--version"}).out);
}

TEST(HelpCommand, UnknownShellsAreNamed) {
  const Ended ended = run_lacuna({"completion", "bsh"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "error: completion: unknown shell 'bsh'; did you mean 'bash'?\n");
}

TEST_F(Completion, BashHasCommandsOptionsAndChoices) {
  EXPECT_THAT(bash("lacuna tr"), ElementsAre("train"));
  EXPECT_THAT(bash("lacuna "), IsSupersetOf({"train", "plan", "completion", "--help"}));
  EXPECT_THAT(bash("lacuna train --re"), ElementsAre("--resume"));
  EXPECT_THAT(bash("lacuna sweep c.yaml --"), IsSupersetOf({"--over", "--set", "--seeds"}));
  EXPECT_THAT(bash("lacuna list al"), ElementsAre("algorithms"));
  EXPECT_THAT(bash("lacuna help ev"), ElementsAre("eval"));
  EXPECT_THAT(bash("lacuna completion f"), ElementsAre("fish"));
  EXPECT_THAT(bash("lacuna export run --format s"), Contains("safetensors"));
  EXPECT_THAT(bash("lacuna prune run --method w"), ElementsAre("wanda"));
}

TEST_F(Completion, BashHasKeysOfConfigurationsAndTheirValues) {
  EXPECT_THAT(bash("lacuna train c.yaml --set optimizer.l"), ElementsAre("optimizer.lr="));
  EXPECT_THAT(bash("lacuna plan c.yaml --set train.ep"), ElementsAre("train.epochs="));
  EXPECT_THAT(bash("lacuna sweep c.yaml --over sparsity.upd"),
              IsSupersetOf({"sparsity.update.freq=", "sparsity.update.stop="}));
  EXPECT_THAT(bash("lacuna train c.yaml --set "),
              AllOf(testing::SizeIs(testing::Gt(130u)), Each(testing::EndsWith("="))));
  // The shell has put the key before = on the line already.
  EXPECT_THAT(bash("lacuna train c.yaml --set optimizer.type=ada"), ElementsAre("adam", "adamw"));
  EXPECT_THAT(bash("lacuna train c.yaml --set data.type=colo"), ElementsAre("colour_glyphs"));
  EXPECT_THAT(bash("lacuna train c.yaml --set train.drop_last=t"), ElementsAre("true"));
}

TEST_F(Completion, BashHasFolders) {
  std::filesystem::create_directory(folder_ / "runs of mine");
  folder_.write("run.txt", "");
  EXPECT_THAT(bash("lacuna train c.yaml --run-dir ru"), ElementsAre("runs of mine"));
  EXPECT_THAT(bash("lacuna train ru"), testing::IsEmpty());  // files, by -o default
}

TEST_F(Completion, ZshHasTheSame) {
  if (shell_path("zsh").empty()) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(zsh("tr"), Contains(StartsWith("train:Train")));
  EXPECT_THAT(zsh("train --re"), Contains(StartsWith("--resume:")));
  EXPECT_THAT(zsh("list al"), Contains("algorithms"));
  EXPECT_THAT(zsh("train --set opt"), Contains(StartsWith("optimizer.lr:")));
  EXPECT_THAT(zsh("train --set optimizer.type=a"), IsSupersetOf({"adam", "adamw", "sgd"}));
  EXPECT_THAT(zsh("train x"), ElementsAre("files"));
}

TEST_F(Completion, FishHasTheSame) {
  if (shell_path("fish").empty()) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish("lacuna tr"), ElementsAre("train"));
  EXPECT_THAT(fish("lacuna train --re"), ElementsAre("--resume"));
  EXPECT_THAT(fish("lacuna list al"), ElementsAre("algorithms"));
  EXPECT_THAT(fish("lacuna train --set optimizer.l"), ElementsAre("optimizer.lr="));
  EXPECT_THAT(fish("lacuna train --set optimizer.type=ad"),
              ElementsAre("optimizer.type=adam", "optimizer.type=adamw"));
}

TEST(ManualPage, HasEveryCommandOptionAndKey) {
  const Ended page = run_lacuna({"help", "--man"});
  EXPECT_EQ(page.code, 0);
  EXPECT_THAT(page.out, StartsWith(".TH LACUNA 1 "));
  for (const std::string& line : lines_of(run_lacuna({"help"}).out)) {
    if (!line.starts_with("  ") || line.starts_with("  -")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_THAT(page.out, HasSubstr("\n.SS " + name + "\n")) << name;
  }
  EXPECT_THAT(page.out, AllOf(HasSubstr("\\fB\\-\\-resume\\fR"), HasSubstr("\\fBtrain.epochs\\fR"),
                              HasSubstr("\\fB\\-\\-out\\fR, \\fB\\-\\-run\\-dir\\fR")));
  if (shell_path("man").empty()) return;
  const TemporaryFolder folder;
  folder.write("lacuna.1", page.out);
  const Ended shown = run_lacuna({"-c", "MANWIDTH=100 man --warnings=w -l ./lacuna.1 | cat"},
                                 {.program = "/bin/sh", .folder = folder.path()});
  EXPECT_EQ(shown.err, "");
  EXPECT_THAT(shown.out, HasSubstr("lacuna eval CHECKPOINT [OPTIONS]"));
  EXPECT_THAT(shown.out, HasSubstr("--temperature T"));
}

}  // namespace
}  // namespace lacuna::help_test
