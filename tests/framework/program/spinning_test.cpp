// How long threads of the program spin while they wait, as its environment tells the OpenMP
// runtime.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "framework/program/process.h"
#include "temporary_folder.h"

namespace lacuna {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The environment of the program once it reads its config: a pipe, at which both wait for the
// other.
std::string environment_of_training(const char* variable = nullptr, const char* value = "") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "config.yaml";
  EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("OMP_WAIT_POLICY");
    ::unsetenv("GOMP_SPINCOUNT");
    if (variable != nullptr) ::setenv(variable, value, 1);
    internal::become({"train", pipe}, {}, folder / "out", folder / "err");
  }
  const int writer = ::open(pipe.c_str(), O_WRONLY);
  const std::string environment = read_text("/proc/" + std::to_string(child) + "/environ");
  ::close(writer);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 2) << "an empty config";
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
}  // namespace lacuna
