// What attention over long sequences holds at most, counted in bytes of buffers.
#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/layers/tokens/attention.h"

namespace lacuna::attention_memory_test {
namespace {

constexpr int64_t kHeads = 2, kFeatures = 16;  // of a head

// The most that forward and backward hold beside their input, on one thread: each has scratch
// memory of its own.
int64_t held_bytes(int64_t tokens, bool is_causal) {
  Attention layer({.heads = kHeads, .causal = is_causal, .dropout = 0.1});
  layer.initialize(1);
  const Tensor x = test::normal_tensor("x", {1, tokens, 3 * kHeads * kFeatures});
  const Variable input = Variable::leaf(x);
  const int64_t before = memory_stats().current;
  reset_memory_peak();
  const Variable output = layer(input);
  backward(output, Tensor::full(output.shape(), 1.0f));
  return memory_stats().peak - before;
}

TEST(AttentionMemory, GrowsWithTheTokensAndNotWithTheirSquare) {
  const int before = num_threads();
  set_num_threads(1);
  for (const bool is_causal : {false, true}) {
    held_bytes(256, is_causal);  // scratch memory that stays is there
    const int64_t few = held_bytes(1024, is_causal), many = held_bytes(4096, is_causal);
    EXPECT_GT(few, 0);
    EXPECT_LE(many, 4 * few + (1 << 16));
    // Output, its gradient and that of the input are 5 · heads · features floats a token; all
    // weights of one head would be 64 MiB.
    EXPECT_LT(many, 3 * 5 * kHeads * kFeatures * 4096 * 4);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::attention_memory_test
