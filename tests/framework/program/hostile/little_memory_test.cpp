// Training with too little memory ends in a message that names what needed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "framework/program/runs.h"

namespace lacuna::little_memory_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class LittleMemory : public RunFixture {
 protected:
  /// Whether the program and its shared libraries can be loaded within a limit of memory. If not,
  /// none of its own code runs: the loader, or the initialization of a library, ends the process.
  bool is_enough_to_load(const ProcessOptions& options) const {
    const int code = run_lacuna({"--version"}, options).code;
    return code >= 0 && code != 127;
  }
};

// Every amount of memory between too little to start and enough ends in a message, or well.
TEST_F(LittleMemory, OfTheMachine) {
  write_text(config(),
             "data: {type: glyphs, train_size: 300, test_size: 60}\n"
             "model: [flatten, {type: linear, out_features: 256}, relu, {type: linear, "
             "out_features: 10}]\n"
             "optimizer: {type: adam}\ntrain: {steps: 6, batch_size: 64, threads: 1}\n");
  for (int megabytes = 80; megabytes <= 160; megabytes += 4) {
    const std::string name = "run" + std::to_string(megabytes);
    const ProcessOptions limit{.max_address_bytes = int64_t{megabytes} * 1'000'000};
    if (!is_enough_to_load(limit)) continue;
    const Ended ended = train({}, name, limit);
    EXPECT_GE(ended.code, 0) << megabytes << " MB\n" << ended.err;
    if (ended.code == 0) continue;
    EXPECT_FALSE(ended.err.empty()) << megabytes;
  }
}

// For whom, and how much.
TEST_F(LittleMemory, ForALayer) {
  const auto trained = [&](const std::string& layers, int batch) {
    write_text(config(), "data: {type: colour_glyphs, train_size: 600, test_size: 60}\nmodel: [" +
                             layers +
                             ", {type: linear, out_features: 10}]\noptimizer: {type: sgd, lr: 1}\n"
                             "train: {steps: 1, threads: 1, batch_size: " +
                             std::to_string(batch) + "}\n");
    const Ended ended =
        train({}, "run" + std::to_string(batch), {.max_address_bytes = 1'000'000'000});
    EXPECT_EQ(ended.code, 1) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(trained("flatten, {type: linear, name: wide, out_features: 1000000}", 8),
              HasSubstr("parameter 'wide.weight' [1000000, 3072] with 3072000000 values: out of "
                        "memory: 12288.0 MB more were requested, "));
  EXPECT_THAT(trained("{type: conv2d, name: many, "
                      "out_channels: 1000, kernel: 1}, flatten",
                      512),
              AllOf(HasSubstr("layer 'many' (conv2d) with [512, 3, 32, 32]: out of memory: "),
                    HasSubstr("a smaller train.batch_size or model needs less")));
}

// Where it is the checkpoint that there is no memory for.
TEST_F(LittleMemory, ForCheckpoints) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "to be or not to be " + std::to_string(i) + "\n";
  write_text(folder_ / "text.txt", text);
  write_text(config(), "data: {type: text, path: " + (folder_ / "text.txt") +
                           ", context: 32}\n"
                           "model: {type: gpt2, n_layer: 4, n_head: 4, n_embd: 128, n_positions: "
                           "32}\n"
                           "optimizer: {type: adamw}\n"
                           "sparsity: {sparsity: 0.8, layout: csr}\n"
                           "train: {steps: 2, batch_size: 4, threads: 1}\n");
  int started = 0;
  for (int megabytes = 80; started < 17; megabytes += 2) {
    const std::string name = "run" + std::to_string(megabytes);
    const ProcessOptions limit{.max_address_bytes = int64_t{megabytes} * 1'000'000};
    if (!is_enough_to_load(limit)) continue;
    ++started;
    const Ended ended = train({}, name, limit);
    EXPECT_GE(ended.code, 0) << megabytes << " MB\n" << ended.err;
    EXPECT_THAT(ended.err, Not(HasSubstr("HDF5: infinite loop"))) << megabytes;
  }
}

TEST_F(LittleMemory, OfTheStack) {
  for (const rlim_t kilobytes : {64, 128, 512}) {
    const Ended ended = train({}, "run" + std::to_string(kilobytes), {.in_child = [&] {
                                const rlimit both{kilobytes << 10, kilobytes << 10};
                                ::setrlimit(RLIMIT_STACK, &both);
                              }});
    EXPECT_EQ(ended.code, kilobytes < 256 ? 1 : 0) << ended.err;
  }
}

}  // namespace
}  // namespace lacuna::little_memory_test
