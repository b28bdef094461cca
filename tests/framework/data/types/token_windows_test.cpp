#include "lacuna/framework/data/types/token_windows.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/token_sequence.hpp"

namespace lacuna::token_windows_test {
namespace {

using test::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Token i is 10 + i.
TokenWindows windows(int64_t tokens, WindowOptions options, int64_t begin = 0, int64_t left = 0) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens));
  std::iota(ids.begin(), ids.end(), int64_t{10});
  return {tokens_in_memory(ids), begin, tokens - left, 1000, nullptr, options};
}

std::vector<int64_t> inputs(const Batch& batch) {
  const auto values = batch.named.at("input_ids").values();
  return {values.begin(), values.end()};
}
std::vector<int64_t> labels(const Batch& batch) {
  return {batch.labels.values().begin(), batch.labels.values().end()};
}
Batch all(const Dataset& dataset) {
  std::vector<int64_t> indices(static_cast<size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return dataset.gather(indices);
}

TEST(TokenWindows, BeginAtEveryTokenThatLeavesRoomForTheNext) {
  const TokenWindows data = windows(6, {.context = 3});
  EXPECT_EQ(data.size(), 3);  // i in [0, 6 − 3 − 1]
  EXPECT_EQ(data.example_shape(), Shape{3});
  EXPECT_EQ(data.vocabulary_size(), 1000);
  EXPECT_EQ(data.num_classes(), 1000);
  EXPECT_TRUE(data.lengths().empty());
  const Batch batch = data.gather(std::vector<int64_t>{2, 0});
  EXPECT_EQ(batch.size, 2);
  EXPECT_FALSE(batch.inputs.defined());
  EXPECT_EQ(batch.labels.shape(), (Shape{2, 3}));
  EXPECT_EQ(batch.named.at("input_ids").shape(), (Shape{2, 3}));
  EXPECT_EQ(batch.named.size(), 1u);
  EXPECT_THAT(inputs(batch), ElementsAre(12, 13, 14, 10, 11, 12));
  EXPECT_THAT(labels(batch), ElementsAre(13, 14, 15, 11, 12, 13));
}

TEST(TokenWindows, LieAStrideApart) {
  const TokenWindows data = windows(10, {.context = 3, .stride = 2});
  EXPECT_EQ(data.size(), 4);
  EXPECT_THAT(inputs(all(data)), ElementsAre(10, 11, 12, 12, 13, 14, 14, 15, 16, 16, 17, 18));
}

TEST(TokenWindows, AreOfThePartThatTheyAreGiven) {
  const TokenWindows data = windows(9, {.context = 2, .stride = 2}, 3, 1);
  EXPECT_EQ(data.tokens(), 5);
  EXPECT_THAT(inputs(all(data)), ElementsAre(13, 14, 15, 16));
  EXPECT_THAT(labels(all(data)), ElementsAre(14, 15, 16, 17));
}

TEST(TokenWindows, ToTheEndPredictEachTokenOnce) {
  for (int64_t tokens = 4; tokens < 40; ++tokens) {
    for (int64_t context = 1; context < tokens; ++context) {
      const TokenWindows data =
          windows(tokens, {.context = context, .stride = context, .to_the_end = true});
      const Batch batch = all(data);
      std::map<int64_t, int> predicted;
      for (size_t i = 0; i < labels(batch).size(); ++i) {
        const int64_t label = labels(batch)[i];
        if (label == kIgnoredLabel) continue;
        EXPECT_EQ(label, inputs(batch)[i] + 1);
        ++predicted[label];
      }
      ASSERT_EQ(predicted.size(), static_cast<size_t>(tokens - 1)) << tokens << ", " << context;
      for (const auto& [token, times] : predicted) ASSERT_EQ(times, 1) << token;
      ASSERT_EQ(data.size(), (tokens - 1 + context - 1) / context);
    }
  }
  const TokenWindows data = windows(6, {.context = 3, .stride = 3, .to_the_end = true});
  EXPECT_THAT(inputs(all(data)), ElementsAre(10, 11, 12, 12, 13, 14));
  EXPECT_THAT(labels(all(data)), ElementsAre(11, 12, 13, kIgnoredLabel, 14, 15));
}

TEST(TokenWindows, RefuseWhatCannotBe) {
  EXPECT_EQ(windows(4, {.context = 3}).size(), 1);
  EXPECT_THAT(message_of<DataError>([] { windows(3, {.context = 3}); }),
              HasSubstr("3 tokens are too few for a window of 3 and the token after it"));
  EXPECT_THAT(message_of<StateError>([] { windows(3, {.context = 0}); }),
              HasSubstr("a context of at least 1, found 0"));
  EXPECT_THAT(message_of<StateError>([] { windows(3, {.context = 1, .stride = 0}); }),
              HasSubstr("a stride of at least 1, found 0"));
  EXPECT_THAT(message_of<StateError>([] { windows(3, {.context = 1}, 2, 2); }),
              HasSubstr("a part of the sequence of 3 tokens, found [2, 1)"));
  EXPECT_THAT(
      message_of<StateError>([] { windows(6, {.context = 3}).gather(std::vector<int64_t>{3}); }),
      HasSubstr("example 3 is out of range: the dataset has 3 examples"));
}

}  // namespace
}  // namespace lacuna::token_windows_test
