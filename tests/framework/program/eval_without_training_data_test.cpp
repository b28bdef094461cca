// `lacuna eval` needs the split that it evaluates, and not the files that the model was trained on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/cifar_files.h"
#include "framework/data/image_files.h"
#include "framework/program/data/trained_table.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

namespace lacuna::eval_without_training_data_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSaid = "the training data is missing";

class EvalAlone : public Use {
 protected:
  // Trains, and evaluates with the training files and without them.
  void same_without(const std::string& yaml, const std::vector<std::string>& training_files) {
    write_text(config(), yaml);
    const Ended trained = train({}, "run", {.folder = folder_.path()});
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended before = run_lacuna({"eval", run_dir(), "--json"});
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_THAT(before.err, IsEmpty());
    for (const std::string& file : training_files) std::filesystem::remove_all(folder_ / file);
    const Ended after = run_lacuna({"eval", run_dir(), "--json"});
    ASSERT_EQ(after.code, 0) << after.err;
    EXPECT_THAT(after.err, HasSubstr(kSaid));
    EXPECT_EQ(after.out, before.out);
  }
  static std::string rest(const std::string& outputs) {
    return "model: [flatten, {type: linear, out_features: " + outputs +
           "}]\noptimizer: {type: adam, lr: 0.05}\n"
           "train: {epochs: 2, batch_size: 10, threads: 1}\n";
  }
};

TEST_F(EvalAlone, OfATable) {
  write_text(folder_ / "train.csv", Table(1).with_labels);
  write_text(folder_ / "test.csv", Table(2).with_labels);
  same_without(
      "data: {type: csv, train: train.csv, test: test.csv, normalize: standard}\n" + rest("3"),
      {"train.csv"});
  // Other columns than those that it was trained on.
  write_text(folder_ / "other.csv", "y,x,label\n1,2,0\n");
  const Ended other =
      run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "other.csv")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("expected the columns that the model was trained on (x, y, and "
                                   "'label' for the label), found y, x, and 'label'"));
  write_text(folder_ / "other.csv", "x,y,label\n1,2,3\n");
  EXPECT_THAT(run_lacuna({"eval", run_dir(), "--set", "data.test=" + (folder_ / "other.csv")}).err,
              HasSubstr("expected a label, which is an integer from 0 to 2, found '3'"));
  std::filesystem::remove(folder_ / "test.csv");
  const Ended nothing = run_lacuna({"eval", run_dir()});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("test.csv: cannot be opened"));
}

// Of which the test file does not have all, nor in the same order.
TEST_F(EvalAlone, OfATableWithNamesOfClasses) {
  write_text(folder_ / "train.csv", "x,what\n1,rain\n2,snow\n8,sun\n9,fog\n1.5,rain\n2.5,snow\n");
  write_text(folder_ / "test.csv", "x,what\n8.5,sun\n2.2,snow\n1.2,snow\n");
  same_without(
      "data: {type: csv, train: train.csv, test: test.csv, normalize: standard}\n" + rest("4"),
      {"train.csv"});
}

TEST_F(EvalAlone, OfARegressionWhoseTargetsWereScaled) {
  std::string train = "x,y\n", test = "x,y\n";
  for (int i = 0; i < 30; ++i) {
    train += number(i) + "," + number(1000 + 3 * i) + "\n";
    test += number(i + 0.5) + "," + number(1002 + 3 * i) + "\n";
  }
  write_text(folder_ / "train.csv", train);
  write_text(folder_ / "test.csv", test);
  same_without(
      "data: {type: csv, task: regression, train: train.csv, test: test.csv, normalize: "
      "standard, normalize_targets: true}\n" +
          rest("1"),
      {"train.csv"});
}

TEST_F(EvalAlone, OfImages) {
  std::filesystem::create_directory(folder_ / "mnist");
  for (const char* split : {"train", "t10k"}) {
    const std::string name = folder_ / "mnist/" + split;
    write_text(name + "-images-idx3-ubyte", idx_images(12, 4, 4));
    write_text(name + "-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x0c", 8) +
                                                std::string("\1\2\3\4\1\2\3\4\1\2\3\4", 12));
  }
  same_without("data: {type: mnist, dir: mnist, normalize: standard}\n" + rest("10"),
               {"mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte"});
}

TEST_F(EvalAlone, OfCifar) {
  write_cifar10(folder_ / "cifar");
  same_without("data: {type: cifar10, dir: cifar, normalize: standard}\n" + rest("10"),
               {"cifar/data_batch_1.bin", "cifar/data_batch_3.bin"});
}

TEST_F(EvalAlone, OfFoldersOfImages) {
  for (const char* folder : {"train/a", "train/b", "val/b", "test/a", "test/b"}) {
    std::filesystem::create_directories(folder_ / ("images/" + std::string(folder)));
    write_text(folder_ / ("images/" + std::string(folder) + "/1.png"),
               plain_png(4, 4, 9, folder[1] == 'r' ? 90 : 80, 200));
  }
  same_without(
      "data: {type: image_folder, dir: images, size: 4, normalize: standard}\n" + rest("2"),
      {"images/train"});
}

TEST_F(EvalAlone, OfText) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be or not to be, " + std::to_string(i) + "\n";
  write_text(folder_ / "train.txt", text);
  write_text(folder_ / "test.txt", text.substr(0, 200));
  same_without(
      "data: {type: text, path: train.txt, test: test.txt, context: 8}\n"
      "model: [{type: token_embedding, features: 4}, {type: linear}]\n"
      "optimizer: {type: adam}\ntrain: {steps: 3, batch_size: 4, threads: 1}\n",
      {"train.txt"});
}

TEST_F(EvalAlone, OfSentences) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i % 2 == 0 ? "1 a good film\n" : "0 a bad film\n";
  write_text(folder_ / "train.txt", lines);
  write_text(folder_ / "test.txt", "0 bad good film\n0 bad\n");
  same_without(
      "data: {type: labelled_text, train: train.txt, test: test.txt}\n"
      "model: {type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "
      "intermediate_size: 8}\n"
      "optimizer: {type: adam}\ntrain: {steps: 3, batch_size: 4, threads: 1}\n",
      {"train.txt"});
}

// A split that is held out of the training examples is not there without them.
TEST_F(EvalAlone, ButNotOfASplitThatWasHeldOut) {
  write_text(folder_ / "train.csv", Table(1).with_labels);
  write_text(config(), "data: {type: csv, train: train.csv, validation: 10}\n" + rest("3"));
  ASSERT_EQ(train({}, "run", {.folder = folder_.path()}).code, 0);
  std::filesystem::remove(folder_ / "train.csv");
  const Ended ended = run_lacuna({"eval", run_dir()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("train.csv: cannot be opened"));
}

// Data of every type that was moved as a whole: eval says which key gives its new place.
TEST_F(EvalAlone, SaysWhereDataThatHasMovedIsToBeGiven) {
  write_text(folder_ / "table.csv", Table(1).with_labels);
  write_text(folder_ / "sentences.txt", "1 a good film\n0 a bad film\n1 good\n0 bad\n");
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be or not to be\n";
  write_text(folder_ / "text.txt", text);
  for (const char* folder : {"train/a", "train/b", "test/a", "test/b"}) {
    std::filesystem::create_directories(folder_ / ("images/" + std::string(folder)));
    write_text(folder_ / ("images/" + std::string(folder) + "/1.png"), plain_png(4, 4, 9, 8, 7));
  }
  write_cifar10(folder_ / "cifar");
  Hdf5File file = Hdf5File::create(folder_ / "arrays.h5");
  for (const char* split : {"train", "test"}) {
    file.write(std::string(split) + "_inputs", Tensor::full({4, 1}, 2.0f));
    file.write(std::string(split) + "_targets", Shape{4}, std::vector<int64_t>{0, 1, 0, 1});
  }
  file.close();
  const std::string words =
      "model: [{type: token_embedding, features: 4}, {type: linear}]\n"
      "optimizer: {type: adam}\ntrain: {steps: 3, batch_size: 4, threads: 1}\n";
  const std::string bert =
      "model: {type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, "
      "intermediate_size: 8}\noptimizer: {type: adam}\ntrain: {steps: 3, threads: 1}\n";
  struct Case {
    std::string data, key, path, rest;
  };
  for (const Case& c : {Case{"type: csv, validation: 10", "train", "table.csv", rest("3")},
                        Case{"type: labelled_text, validation: 2", "train", "sentences.txt", bert},
                        Case{"type: text, context: 8, validation: 0.3", "path", "text.txt", words},
                        Case{"type: image_folder, size: 4", "dir", "images", rest("2")},
                        Case{"type: cifar10", "dir", "cifar", rest("10")},
                        Case{"type: hdf5, test_inputs: test_inputs, test_targets: test_targets",
                             "path", "arrays.h5", rest("2")}}) {
    const std::string run = "run_of_" + c.path;
    write_text(config(), "data: {" + c.data + ", " + c.key + ": " + c.path + "}\n" + c.rest);
    const Ended trained = train({}, run, {.folder = folder_.path()});
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Ended before = run_lacuna({"eval", run_dir(run)});
    std::filesystem::rename(folder_ / c.path, folder_ / ("moved_" + c.path));
    const Ended after = run_lacuna({"eval", run_dir(run)});
    EXPECT_EQ(after.code, 1) << c.path;
    EXPECT_THAT(after.err, HasSubstr("--set data." + c.key + "=PATH gives another one")) << c.path;
    const Ended told = run_lacuna(
        {"eval", run_dir(run), "--set", "data." + c.key + "=" + (folder_ / ("moved_" + c.path))});
    EXPECT_EQ(told.code, 0) << told.err;
    EXPECT_EQ(told.out, before.out);
  }
}

}  // namespace
}  // namespace lacuna::eval_without_training_data_test
