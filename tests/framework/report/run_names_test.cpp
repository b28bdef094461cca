#include "lacuna/framework/report/run_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lacuna::run_names_test {
namespace {

using testing::ElementsAre;

TEST(NamesOfFolders, AreTheShortestEndsThatDiffer) {
  EXPECT_THAT(names_of_folders({"/r/a/x", "/r/b/x/", "/r/b/y"}), ElementsAre("a/x", "b/x", "y"));
  EXPECT_THAT(names_of_folders({"/r/x"}), ElementsAre("x"));
  EXPECT_THAT(names_of_folders({"/r/x", "/r/x"}), ElementsAre("x", "x"));
}

TEST(ShortLabels, LeaveOutSettingsThatAllHave) {
  EXPECT_THAT(short_labels({"optimizer.lr=0.1,sparsity.sparsity=0.9,seed=0",
                            "optimizer.lr=0.01,sparsity.sparsity=0.9,seed=0"}),
              ElementsAre("lr=0.1", "lr=0.01"));
  EXPECT_THAT(short_labels({"a.lr=1,seed=0", "a.lr=1,seed=1", "a.lr=2,seed=0"}),
              ElementsAre("lr=1,seed=0", "lr=1,seed=1", "lr=2,seed=0"));
  // The last part of a key alone would not tell these apart.
  EXPECT_THAT(short_labels({"a.x=1", "b.x=1"}), ElementsAre("a.x=1", "b.x=1"));
  EXPECT_THAT(short_labels({"k=[1, 2],s=0", "k=[1, 3],s=0"}), ElementsAre("k=[1, 2]", "k=[1, 3]"));
}

TEST(ShortLabels, LeaveOutWordsThatAllBeginOrEndWith) {
  EXPECT_THAT(short_labels({"mnist_lenet_rigl_final", "mnist_lenet_set_final"}),
              ElementsAre("rigl", "set"));
  EXPECT_THAT(short_labels({"lenet-rigl-s0", "lenet-rigl-s1", "lenet-set-s0"}),
              ElementsAre("rigl-s0", "rigl-s1", "set-s0"));
  EXPECT_THAT(short_labels({"lenet", "lenet-2"}), ElementsAre("lenet", "lenet-2"));
  // Parts of words are kept, and a number alone says too little.
  EXPECT_THAT(short_labels({"rigl", "rigl2"}), ElementsAre("rigl", "rigl2"));
  EXPECT_THAT(short_labels({"net-rigl-90", "net-rigl-95"}), ElementsAre("rigl-90", "rigl-95"));
}

TEST(CommonLabel, IsWhatAllBeginWith) {
  EXPECT_EQ(common_label({"rigl-s0", "rigl-s1"}), "rigl");
  EXPECT_EQ(common_label({"lr=1,seed=0", "lr=1,seed=1"}), "lr=1");
  EXPECT_EQ(common_label({"a-s0"}), "a-s0");
  EXPECT_EQ(common_label({"a", "b"}), "");
  EXPECT_EQ(common_label({"a", "a-2"}), "");
  EXPECT_EQ(common_label({}), "");
}

TEST(ShortLabels, AreThoseOfOneRunOrOfTheSameTwice) {
  EXPECT_THAT(short_labels({"a-b"}), ElementsAre("a-b"));
  EXPECT_THAT(short_labels({"a-b", "a-b"}), ElementsAre("a-b", "a-b"));
  EXPECT_THAT(short_labels({}), ElementsAre());
}

}  // namespace
}  // namespace lacuna::run_names_test
