#include "lacuna/framework/config/error_place.h"

#include <gtest/gtest.h>

namespace lacuna::error_place_test {
namespace {

TEST(ErrorPlace, IsReadOffTheMessage) {
  const ErrorPlace place = ErrorPlace::of("a: b.yaml:3:15: train.batch_size: expected 1: found 0");
  EXPECT_EQ(place.file, "a: b.yaml");
  EXPECT_EQ(place.line, 3);
  EXPECT_EQ(place.column, 15);
  EXPECT_EQ(place.key, "train.batch_size");
}

TEST(ErrorPlace, LeavesOutWhatTheMessageDoesNotSay) {
  const ErrorPlace keyed = ErrorPlace::of("optimizer.lr: expected a number");
  EXPECT_EQ(keyed.file, "");
  EXPECT_EQ(keyed.line, 0);
  EXPECT_EQ(keyed.key, "optimizer.lr");
  EXPECT_EQ(ErrorPlace::of("0.out_feature: unknown key").key, "0.out_feature");
  EXPECT_EQ(ErrorPlace::of("17: unknown key").key, "");
  EXPECT_EQ(ErrorPlace::of("run.yaml:3:5: two words: no key").key, "");
  EXPECT_EQ(ErrorPlace::of("run.yaml:3:5: two words: no key").line, 3);
  EXPECT_EQ(ErrorPlace::of("layer 'fc1' (linear): 12:30: a time").line, 0);
  EXPECT_EQ(ErrorPlace::of("").key, "");
}

}  // namespace
}  // namespace lacuna::error_place_test
