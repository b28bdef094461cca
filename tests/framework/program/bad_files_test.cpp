// Files that cannot be used: exit code 1, a message that names the file and what is wrong with it,
// and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/layers/linear.h"

namespace lacuna::bad_files_test {
namespace {

using testing::HasSubstr;

std::string idx(const std::string& head, const std::vector<int>& sizes, size_t bytes, char value) {
  std::string text = head;
  for (const int size : sizes) text += std::string("\0\0\0", 3) + static_cast<char>(size);
  return text + std::string(bytes, value);
}

std::string idx_images(int count) {
  return idx(std::string("\0\0\x08\x03", 4), {count, 2, 2}, static_cast<size_t>(count) * 4, '\x20');
}
std::string idx_labels(int count, char label = 1) {
  return idx(std::string("\0\0\x08\x01", 4), {count}, static_cast<size_t>(count), label);
}

class BadFiles : public RunFixture {
 protected:
  void refused(const Ended& ended, const std::string& message) {
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_EQ(ended.out, "");
  }
};

TEST_F(BadFiles, OfMnist) {
  write_text(config(), "data: {type: mnist, dir: " + (folder_ / "mnist") +
                           "}\nmodel: [flatten, {type: linear, out_features: 10}]\n"
                           "optimizer: {type: adam}\ntrain: {steps: 2, threads: 1}\n");
  refused(train(), (folder_ / "mnist") + ": no such folder; data.dir must hold train-images-idx3");
  refused(train(), "t10k-labels-idx1-ubyte, plain or with .gz (set by " + config() +
                       ":1:26: data.dir; --set data.dir=PATH gives another one)");
  EXPECT_THAT(train({"--set", "data.dir=''"}).err,
              HasSubstr("data.dir: expected a path, found ''"));
  std::filesystem::create_directory(folder_ / "mnist");
  const std::vector<std::string> names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  const auto write_all = [&] {
    for (size_t i = 0; i < 4; ++i) {
      write_text(folder_ / "mnist/" + names[i], i % 2 == 0 ? idx_images(6) : idx_labels(6));
    }
  };
  const auto refuses = [&](size_t file, const std::string& bytes, const std::string& message) {
    write_all();
    write_text(folder_ / "mnist/" + names[file], bytes);
    const Ended ended = train();
    refused(ended, names[file]);
    refused(ended, message);
    EXPECT_FALSE(std::filesystem::exists(run_dir())) << message;
  };
  refuses(0, idx_images(6).substr(0, 30), "truncated");
  refuses(1, idx_images(6), "wrong magic number: expected 0x00000801");
  refuses(1, idx_labels(5), "5 labels");
  refuses(1, idx_labels(6, 12), "12");
  refuses(2, idx(std::string("\0\0\x08\x03", 4), {0, 2, 2}, 0, 0),
          "empty: the header says 0 images");
  write_all();
  std::filesystem::remove(folder_ / "mnist/" + names[3]);
  refused(train(), names[3]);
  write_all();
  EXPECT_EQ(train().code, 0);
}

TEST_F(BadFiles, OfTables) {
  const std::string table = folder_ / "table.csv";
  write_text(config(), "data: {type: csv, train: " + table +
                           "}\nmodel: [{type: linear, out_features: 2}]\n"
                           "optimizer: {type: adam}\ntrain: {steps: 2, threads: 1}\n");
  const auto refuses = [&](const std::string& text, const std::string& message) {
    write_text(table, text);
    refused(train(), "error: " + table + message);
    EXPECT_FALSE(std::filesystem::exists(run_dir())) << message;
  };
  refused(train(), "error: " + table + ": cannot be opened: No such file or directory");
  refuses("", ": the file is empty");
  refuses("x,l\n", ": no examples after the header");
  refuses("x,l\n1,0\n2\n", ":3:1: expected 2 fields, found 1");
  refuses("x,l\n1,0\ntwo,1\n", ":3:1: field 'x': expected a number, found 'two'");
  refuses("x,l\n1,0\n2,-1\n", ":3:3: field 'l': expected a label");
  write_text(table, "x,l\n1,0\n2,0\n");
  const Ended one_class = train();
  EXPECT_EQ(one_class.code, 2);
  EXPECT_THAT(one_class.err,
              HasSubstr("data: all training labels are 0, and classification needs"));
  refused(train({"--set", "data.train=/dev/zero"}), "/dev/zero: is a device, not a file of data");
  write_text(table, "x,l\n1,0\n2,1\n");
  write_text(folder_ / "test.csv", "x,l\n1,2\n");
  refused(train({"--set", "data.test=" + (folder_ / "test.csv")}),
          "test.csv:2:3: field 'l': expected a label, which is an integer from 0 to 1, found '2'");
  const Ended no_batch = train({"--set", "train.drop_last=true"});
  EXPECT_EQ(no_batch.code, 2);
  EXPECT_THAT(no_batch.err,
              HasSubstr("train.drop_last: a dataset of 2 examples has no whole batch of 128"));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

// Each of the commands that read a checkpoint, for each thing that is none.
TEST_F(BadFiles, OfCheckpoints) {
  ASSERT_EQ(train({"--set", "train.steps=1"}).code, 0);
  const std::string good = read_text(checkpoint(1));
  const auto damage = [&](const std::string& name, const std::function<void(std::string&)>& how) {
    std::string bytes = good;
    how(bytes);
    write_text(folder_ / name, bytes);
  };
  damage("cut.h5", [](std::string& bytes) { bytes.resize(3000); });
  damage("flipped.h5", [](std::string& bytes) { bytes[9000] ^= 1; });
  damage("newer.h5", [](std::string& bytes) { bytes[bytes.find("format 2") + 7] = '9'; });
  damage("empty.h5", [](std::string& bytes) { bytes.clear(); });
  std::filesystem::create_directory(folder_ / "nothing");
  write_text(folder_ / "torch.zip", "PK\x03\x04 and so on");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"missing.h5",
       "cannot read the checkpoint '" + (folder_ / "missing.h5") + "': No such file or directory"},
      {"cut.h5", "' is cut off or damaged: expected "},
      {"flipped.h5", "' is damaged: expected the checksum "},
      {"newer.h5",
       "' was written in format 9, but this version of lacuna reads up to 2: use a newer one"},
      {"empty.h5", "empty.h5"},
      {"config.yaml",
       "' is not a checkpoint, or is damaged: it does not begin with 'lacuna checkpoint'"},
      {"torch.zip", "holds weights of another tool, not a lacuna checkpoint: `lacuna import FILE"},
      {"nothing", "the folder '" + (folder_ / "nothing") +
                      "' holds no checkpoints; give a checkpoint file, or the folder of a run"}};
  std::string layers =
      "[flatten, {type: linear, name: fc1, out_features: 12}, relu, dropout, "
      "{type: linear, name: fc2, out_features: 10}]";
  for (const auto& [name, message] : cases) {
    SCOPED_TRACE(name);
    refused(run_lacuna({"eval", folder_ / name}), message);
    refused(run_lacuna({"inspect", folder_ / name, "--json"}), message);
    refused(run_lacuna({"predict", folder_ / name, "x.csv", "--out", folder_ / "out.csv"}),
            message);
    if (name == "nothing") continue;
    const Ended started = train(
        {"--set", "model={init_from: " + (folder_ / name) + ", layers: " + layers + "}"}, "new");
    refused(started, message);
    refused(started, "model.init_from: ");
    EXPECT_FALSE(std::filesystem::exists(run_dir("new")));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.csv"));
  }
}

TEST_F(BadFiles, OfAModelWithoutARun) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 2, .out_features = 2});
  save_model(folder_ / "model.h5", model);
  const std::string message = "model.h5' holds a model without the configuration of a run";
  refused(run_lacuna({"eval", folder_ / "model.h5"}), message);
  refused(run_lacuna({"predict", folder_ / "model.h5", "x.csv", "--out", "y.csv"}), message);
  EXPECT_EQ(run_lacuna({"inspect", folder_ / "model.h5"}).code, 0);
}

TEST_F(BadFiles, OfAnotherModel) {
  ASSERT_EQ(train({"--set", "train.steps=1"}).code, 0);
  const Ended ended =
      train({"--set", "model={init_from: " + checkpoint(1) +
                          ", layers: [flatten, {type: linear, name: fc1, out_features: 10}]}"},
            "new");
  refused(ended,
          "model.init_from: the checkpoint belongs to a different model: 'fc1.weight' is [10, 784] "
          "in the model, [12, 784] in the checkpoint");
  refused(ended, "'fc2.weight' [10, 12] is in the checkpoint only");
  EXPECT_FALSE(std::filesystem::exists(run_dir("new")));
}

}  // namespace
}  // namespace lacuna::bad_files_test
