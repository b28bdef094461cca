// The cap on the instruction set, by the environment.
#include "lacuna/framework/kernels/instruction_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/compiled_instruction_sets.hpp"

namespace lacuna::instruction_set_test {
namespace {

// The variable is read once in a process, so that each value is tried in a process of its own.
class InstructionSetDeathTest : public testing::Test {
 protected:
  InstructionSetDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void say(const char* cap) {
    setenv("LACUNA_INSTRUCTION_SET", cap, 1);
    try {
      std::fprintf(stderr, "%s, reference: %s", active_instruction_set().c_str(),
                   use_reference_kernels() ? "yes" : "no");
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s", error.what());
      std::exit(1);
    }
    std::exit(0);
  }
};

#ifdef LACUNA_ONE_INSTRUCTION_SET
TEST_F(InstructionSetDeathTest, OfABuildForOneSetCannotBeCappedBelowIt) {
  EXPECT_EXIT(say("baseline"), testing::ExitedWithCode(1),
              "LACUNA_INSTRUCTION_SET=baseline: this build only has kernels for [a-z0-9]+; build "
              "with -DLACUNA_KERNELS=all");
}
#else
TEST_F(InstructionSetDeathTest, IsCappedByTheEnvironment) {
  EXPECT_EXIT(say("baseline"), testing::ExitedWithCode(0), "baseline, reference: no");
  EXPECT_EXIT(say("reference"), testing::ExitedWithCode(0), "reference, reference: yes");
}
#endif

TEST_F(InstructionSetDeathTest, OfAnUnknownNameIsAnError) {
  EXPECT_EXIT(say("referense"), testing::ExitedWithCode(1),
              "LACUNA_INSTRUCTION_SET: unknown instruction set 'referense'; did you mean "
              "'reference'");
}

// What the program warns of, for processors and builds that are not these.
TEST(UncompiledInstructionSet, IsTheProcessorsBestWithoutKernels) {
#if HWY_ARCH_X86
  const int64_t newer = HWY_AVX3 | HWY_AVX2 | HWY_SSE4, older = HWY_AVX2 | HWY_SSE4;
  EXPECT_EQ(uncompiled_instruction_set(newer, HWY_AVX2), "avx512");
  EXPECT_EQ(uncompiled_instruction_set(older, HWY_SSE4 | HWY_AVX3), "avx2");
  EXPECT_EQ(uncompiled_instruction_set(newer, HWY_AVX3), "");
  EXPECT_EQ(uncompiled_instruction_set(older, newer), "");
#endif
  EXPECT_EQ(uncompiled_instruction_set(0, 0), "");
  EXPECT_THAT(compiled_instruction_sets(), testing::Contains(active_instruction_set()));
}

}  // namespace
}  // namespace lacuna::instruction_set_test
