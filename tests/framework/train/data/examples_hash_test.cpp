// Hashes of data that processes compare.
#include "lacuna/framework/train/data/examples_hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace lacuna {
namespace {

Examples numbered(int64_t size) {
  Examples examples{.example_shape = Shape{2}, .inputs = std::vector<float>(), .num_classes = 3};
  std::vector<float> inputs(static_cast<size_t>(2 * size));
  std::iota(inputs.begin(), inputs.end(), 1.0f);
  examples.inputs = inputs;
  for (int64_t i = 0; i < size; ++i) examples.labels.push_back(i % 3);
  return examples;
}

uint64_t hash_of(Examples examples) { return examples_hash(ArrayDataset(std::move(examples))); }

TEST(ExamplesHash, IsTheSameOfTheSameAlone) {
  for (const int64_t size : {1, 2, 31, 32, 33, 1000}) {
    EXPECT_EQ(hash_of(numbered(size)), hash_of(numbered(size))) << size;
    for (const int64_t changed : {int64_t{0}, size / 3, size - 1}) {
      Examples other_input = numbered(size), other_label = numbered(size);
      std::get<std::vector<float>>(other_input.inputs)[static_cast<size_t>(2 * changed + 1)] +=
          1.0f;
      other_label.labels[static_cast<size_t>(changed)] =
          (other_label.labels[static_cast<size_t>(changed)] + 1) % 3;
      const std::set<uint64_t> hashes{hash_of(numbered(size)), hash_of(other_input),
                                      hash_of(other_label)};
      EXPECT_EQ(hashes.size(), 3u) << size << " examples, another at " << changed;
    }
  }
}

TEST(ExamplesHash, SeesTargetsAndNormalization) {
  const auto regression = [](float last) {
    return Examples{.example_shape = Shape{1},
                    .inputs = std::vector<float>{1.0f, 2.0f},
                    .targets = {0.0f, last},
                    .num_outputs = 1};
  };
  EXPECT_NE(hash_of(regression(1.0f)), hash_of(regression(2.0f)));
  const ArrayDataset data(numbered(5));
  EXPECT_NE(examples_hash(data), examples_hash(*data.normalized({.mean = {1.0}, .std = {1.0}})));
}

}  // namespace
}  // namespace lacuna
