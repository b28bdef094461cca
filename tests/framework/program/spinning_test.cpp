// How long threads of the program spin while they wait, as its environment tells the OpenMP
// runtime.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "framework/program/process.h"
#include "temporary_folder.h"

namespace lacuna::spinning_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The environment of the program once it trains: a run without end, which is killed then.
std::string environment_of_training(const char* variable = nullptr, const char* value = "") {
  const TemporaryFolder folder;
  const std::string config = folder.write(
      "config.yaml",
      "data: {type: synthetic, train_size: 64, test_size: 16, features: 8, classes: 4}\n"
      "model: [{type: linear, out_features: 4}]\n"
      "optimizer: {type: sgd, lr: 0.01}\n"
      "train: {steps: 1000000000, eval_every: 1000000000, checkpoint: {every: 1000000000}}\n");
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("OMP_WAIT_POLICY");
    ::unsetenv("GOMP_SPINCOUNT");
    if (variable != nullptr) ::setenv(variable, value, 1);
    internal::become({"train", config, "--run-dir", folder / "run"}, {}, folder / "out",
                     folder / "err");
  }
  int status = 0;
  while (!std::filesystem::exists(folder / "run/metrics.jsonl")) {
    if (::waitpid(child, &status, WNOHANG) != 0) {
      ADD_FAILURE() << "it ended before it trained: " << read_text(folder / "err");
      return "";
    }
    ::usleep(1000);
  }
  std::string environment = read_text("/proc/" + std::to_string(child) + "/environ");
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return environment;
}

TEST(Spinning, IsShort) {
  EXPECT_THAT(environment_of_training(), HasSubstr("GOMP_SPINCOUNT=2000"));
}

TEST(Spinning, IsAsTheUserSays) {
  EXPECT_THAT(environment_of_training("OMP_WAIT_POLICY", "passive"),
              Not(HasSubstr("GOMP_SPINCOUNT")));
  const std::string counted = environment_of_training("GOMP_SPINCOUNT", "17");
  EXPECT_THAT(counted, HasSubstr("GOMP_SPINCOUNT=17"));
  EXPECT_THAT(counted, Not(HasSubstr("GOMP_SPINCOUNT=2000")));
}

}  // namespace
}  // namespace lacuna::spinning_test
