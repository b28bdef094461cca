// What nobody means, and what must end in a message all the same: no crash, no endless wait,
// nothing of others overwritten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/data/trained_table.h"

namespace lacuna::hostile_input_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class HostileInput : public Use {
 protected:
  // Killed by SIGALRM where it would wait without end.
  static Ended soon(const std::vector<std::string>& arguments) {
    return run_lacuna(arguments, {.in_child = [] { ::alarm(20); }});
  }
  void refuses(const std::vector<std::string>& arguments, int code, const std::string& message) {
    const Ended ended = soon(arguments);
    EXPECT_EQ(ended.code, code) << ended.err.substr(0, 500);
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_LT(ended.err.size(), 5000u);
  }
  std::string pipe() const {
    const std::string path = folder_ / "pipe";
    ::mkfifo(path.c_str(), 0600);
    return path;
  }
};

TEST_F(HostileInput, OfDeepPaths) {
  std::string path = "a";
  for (int i = 0; i < 30000; ++i) path += ".a";
  refuses({"train", config(), "--run-dir", run_dir(), "--set", path + "=1"}, 2,
          "has more than 100 parts");
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

TEST_F(HostileInput, OfIndices) {
  for (const char* index : {"1e0", "+1", "1.0", "-1", "0x1"}) {
    const std::string path = std::string("model.") + index;
    if (path.find("1.0") != std::string::npos) continue;  // is model.1, and in it 0
    refuses({"train", config(), "--run-dir", run_dir(), "--set", path + ".out_features=3"}, 2,
            std::string("'") + index + "' is not an index of this list, whose length is 5");
  }
}

TEST_F(HostileInput, OfNames) {
  const auto with_name = [&](const std::string& name) {
    write_text(config(),
               "data: {type: glyphs, train_size: 50, test_size: 20}\n"
               "model: [flatten, {type: linear, out_features: 10, name: \"" +
                   name +
                   "\"}]\n"
                   "optimizer: {type: adam}\n"
                   "sparsity: {algorithm: set, sparsity: 0.9, update: {freq: 2}, layout: csr, "
                   "param_filter: default}\n"
                   "train: {steps: 6, batch_size: 10, threads: 1, checkpoint: {every: 2}}\n");
  };
  with_name("a\\0b");
  refuses({"train", config(), "--run-dir", run_dir()}, 2, "holds a zero byte");
  with_name(
      "a\xFF"
      "b");
  refuses({"train", config(), "--run-dir", run_dir()}, 2, "the byte 0xff is not UTF-8");
  refuses({"train", config(), "--run-dir", run_dir() + "\xFF"}, 2, "is not UTF-8");
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
  with_name(std::string(1020, 'n'));
  ASSERT_EQ(train({}, "run", {.fault = "step.between:5"}).code, -9);
  const Ended resumed = train({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(HostileInput, OfPipes) {
  const std::string fifo = pipe();
  refuses({"train", fifo, "--run-dir", run_dir()}, 2,
          "cannot read config '" + fifo + "': it is a pipe, not a file");
  refuses({"eval", fifo}, 1, "is a pipe, not a file");
  const auto data = [&](const std::string& section) {
    return std::vector<std::string>{"train",   config(), "--run-dir",
                                    run_dir(), "--set",  "data=" + section};
  };
  refuses(data("{type: csv, train: " + fifo + "}"), 1, fifo + ": is a pipe, not a file of data");
  refuses(data("{type: hdf5, path: " + fifo + "}"), 1, "it is a pipe, not a file");
  for (const char* keys : {"type: text, path: ", "type: text, tokenizer: bytes, path: ",
                           "type: labelled_text, train: "}) {
    refuses(data("{" + std::string(keys) + fifo + "}"), 1, "is a pipe, not a file of data");
  }
  const std::string folder = folder_ / "pipes/train/a";
  std::filesystem::create_directories(folder);
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train.bin",
                           "data_batch_1.bin", "train/a/1.png", "config.json", "model.safetensors",
                           "w.npz", "w.npy", "vocab.json", "merges.txt"}) {
    ASSERT_EQ(::mkfifo((folder_ / ("pipes/" + std::string(name))).c_str(), 0600), 0);
  }
  const std::string pipes = folder_ / "pipes";
  for (const char* type : {"mnist", "cifar10", "tokens"}) {
    refuses(data("{type: " + std::string(type) + ", dir: " + pipes + "}"), 1,
            "is a pipe, not a file of data");
  }
  refuses(data("{type: image_folder, size: 8, train_dir: " + pipes + "/train}"), 1,
          "neither a file nor a link to one");
  write_text(folder_ / "text.txt", "to be or not to be");
  refuses(data("{type: text, path: " + (folder_ / "text.txt") + ", tokenizer: bpe, vocab: " +
               pipes + "/vocab.json, merges: " + pipes + "/merges.txt}"),
          1, "is a pipe, not a file of data");
  for (const std::string& source : {fifo, pipes, pipes + "/w.npz", pipes + "/w.npy"}) {
    refuses({"train", config(), "--run-dir", run_dir(), "--init-from", source}, 1,
            "is a pipe, not a file");
    refuses({"import", source, "--config", config(), "--out", run_dir()}, 1,
            "is a pipe, not a file");
  }
  refuses({"train", config(), "--run-dir", run_dir(), "--set", "model={from_hf: " + pipes + "}"}, 2,
          "it is a pipe, not a file");
  refuses({"train", config(), "--run-dir", run_dir(), "--set",
           "loss={type: distillation, teacher: " + fifo + "}"},
          1, "is a pipe, not a file");
  for (const char* command : {"inspect", "generate"}) refuses({command, fifo}, 1, "is a pipe");
  train_table();
  refuses({"predict", run_dir(), fifo, "--out", folder_ / "o.csv"}, 1, "is a pipe");
}

// Whatever file of a run is one, it is said, or the file is passed over.
TEST_F(HostileInput, OfPipesInARunFolder) {
  ASSERT_EQ(train({"--set", "sparsity={sparsity: 0.5}", "--set", "train.tensorboard=true"}).code,
            0);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run_dir())) {
    if (entry.is_regular_file()) {
      files.push_back(std::filesystem::relative(entry.path(), run_dir()).string());
    }
  }
  files.emplace_back("changes.jsonl");
  files.emplace_back("checkpoints/best.h5");
  ASSERT_GE(files.size(), 8u);
  for (const std::string& file : files) {
    const std::string copy = run_dir("copy");
    std::filesystem::copy(run_dir(), copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove(copy + "/" + file);
    ASSERT_EQ(::mkfifo((copy + "/" + file).c_str(), 0600), 0) << file;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"report", copy, "--out", folder_ / "report.html"},
          {"compare", copy},
          {"inspect", copy},
          {"eval", copy},
          {"train", "--resume", "--run-dir", copy, "--set", "train.epochs=4"}}) {
      const Ended ended = soon(arguments);
      EXPECT_GE(ended.code, 0) << arguments.front() << " waits for " << file;
      if (ended.code > 0) {
        EXPECT_THAT(ended.err, HasSubstr("error: "));
      }
    }
    std::filesystem::remove_all(copy);
  }
}

TEST_F(HostileInput, OfAPipeInPlaceOfTheCostCache) {
  write_text(config(),
             "data: {type: glyphs, train_size: 50, test_size: 20}\n"
             "model: [flatten, {type: linear, out_features: 10}]\n"
             "optimizer: {type: adam}\n"
             "sparsity: {algorithm: set, sparsity: 0.9, update: {freq: 2}, param_filter: default}\n"
             "train: {steps: 4, batch_size: 10, threads: 1}\n");
  const std::string cache = folder_ / "cache";
  const auto with_cache = [&](const std::string& name) {
    return train({}, name, {.in_child = [&] {
                   ::setenv("LACUNA_CACHE_DIR", cache.c_str(), 1);
                   ::alarm(60);
                 }});
  };
  ASSERT_EQ(with_cache("first").code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    const std::string file = entry.path().string();
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  }
  EXPECT_EQ(with_cache("second").code, 0);
}

TEST_F(HostileInput, OfMetricsThatAreALink) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, -9);
  const std::string metrics = run_dir() + "/metrics.jsonl", other = folder_ / "other.txt";
  write_text(other, std::string(100000, 'x'));
  std::filesystem::remove(metrics);
  std::filesystem::create_symlink(other, metrics);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("metrics.jsonl': it is a link"));
  EXPECT_EQ(read_text(other).size(), 100000u);
}

// A checkpoint that somebody else has sealed.
TEST_F(HostileInput, OfValuesThatAreNoNumbers) {
  ASSERT_EQ(train({"--set", "train.steps=4"}).code, 0);
  Checkpoint saved = read_checkpoint(checkpoint(4));
  auto weight = saved.state.get<Tensor>("model/fc2.weight").clone();
  weight.mutable_data()[3] = std::nanf("");
  saved.state.set("model/fc2.weight", weight);
  write_checkpoint(folder_ / "nan.h5", saved);
  const std::string message = "'fc2.weight' has values that are NaN or infinite";
  refuses({"eval", folder_ / "nan.h5"}, 1, message);
  refuses({"eval", folder_ / "nan.h5", "--json"}, 1, message);
  refuses({"train", config(), "--run-dir", run_dir("new"), "--set",
           "model={init_from: " + (folder_ / "nan.h5") +
               ", layers: [flatten, {type: linear, name: fc1, out_features: 12}, relu, dropout, "
               "{type: linear, name: fc2, out_features: 10}]}"},
          1, message);
  EXPECT_THAT(soon({"inspect", folder_ / "nan.h5"}).out,
              HasSubstr("'model/fc2.weight' has 1 values that are NaN or infinite"));
  const Config report = parse_yaml(soon({"inspect", folder_ / "nan.h5", "--json"}).out, "out");
  EXPECT_EQ(report.at("not_finite").at("model/fc2.weight").text(), "1");
  write_checkpoint(checkpoint(4), saved);
  const Ended resumed = train({"--resume", "--set", "train.steps=6"});
  EXPECT_EQ(resumed.code, 1);
  EXPECT_THAT(resumed.err, HasSubstr(message));
}

// In what a run needs to go on, though not to be evaluated.
TEST_F(HostileInput, OfStatesThatAreNoNumbers) {
  ASSERT_EQ(train({"--set", "train.steps=4"}).code, 0);
  const Checkpoint good = read_checkpoint(checkpoint(4));
  for (const char* name : {"optimizer/fc2.weight/exp_avg", "optimizer/fc1.bias/exp_avg_sq"}) {
    for (const float bad : {std::nanf(""), INFINITY}) {
      Checkpoint saved = good;
      auto state = saved.state.get<Tensor>(name).clone();
      state.mutable_data()[2] = bad;
      saved.state.set(name, state);
      write_checkpoint(checkpoint(4), saved);
      EXPECT_THAT(soon({"inspect", run_dir()}).out,
                  HasSubstr("'" + std::string(name) + "' has 1 values that are NaN or infinite"));
      const Config report = parse_yaml(soon({"inspect", run_dir(), "--json"}).out, "out");
      EXPECT_EQ(report.at("not_finite").at(name).text(), "1");
      EXPECT_EQ(soon({"eval", run_dir()}).code, 0);
      const Ended resumed = train({"--resume", "--set", "train.steps=6"});
      EXPECT_EQ(resumed.code, 1);
      EXPECT_THAT(resumed.err,
                  HasSubstr("'" + std::string(name) +
                            "' has values that are NaN or infinite (in '" + checkpoint(4) + "')"));
    }
  }
}

// The square of such a gradient is infinite, and the weights stay where they are for good.
TEST_F(HostileInput, OfStatesThatBecomeInfinite) {
  std::string table = "x,y\n";
  for (int i = 0; i < 20; ++i) table += std::to_string(i) + "e20,1e12\n";
  write_text(folder_ / "table.csv", table);
  write_text(config(), "data: {type: csv, task: regression, train: " + (folder_ / "table.csv") +
                           "}\nmodel: [{type: linear, out_features: 1}]\n"
                           "optimizer: {type: adam, lr: 1.0e-30}\n"
                           "train: {epochs: 2, batch_size: 10, threads: 1}\n");
  const Ended ended = train();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("is NaN or infinite at step "));
}

TEST_F(HostileInput, OfAWrongInstructionSet) {
  const Ended ended =
      train({}, "run", {.in_child = [] { ::setenv("LACUNA_INSTRUCTION_SET", "avx1024", 1); }});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err,
              testing::StartsWith("error: LACUNA_INSTRUCTION_SET: unknown instruction set"));
}

TEST_F(HostileInput, OfAWrongKindOfProcessor) {
  const Ended ended =
      train({}, "run", {.in_child = [] { ::setenv("LACUNA_PROCESSOR", "intl", 1); }});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, testing::StartsWith("error: LACUNA_PROCESSOR: unknown kind of processor"));
}

TEST_F(HostileInput, OfAWrongNumberOfDenseBlocks) {
  for (const char* blocks : {"0", "65", "-1", "2x", "99999999999999999999"}) {
    SCOPED_TRACE(blocks);
    const Ended ended =
        train({}, "run", {.in_child = [&] { ::setenv("LACUNA_DENSE_BLOCKS", blocks, 1); }});
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.err, std::string("error: LACUNA_DENSE_BLOCKS: needs a number of blocks from 1 "
                                     "to 64, found '") +
                             blocks + "'\n");
  }
}

// Each would be carried out, and not do what was meant.
TEST_F(HostileInput, OfOptionsThatDoNothing) {
  const auto with = [&](const std::string& setting) {
    return std::vector<std::string>{"train", config(), "--run-dir", run_dir(), "--set", setting};
  };
  refuses(with("sparsity={algorithm: static, fan_in: 13, param_filter: default}"), 2,
          "a fan_in of 13 exceeds the 12 inputs of each row of parameter 'fc2.weight'");
  refuses(with("sparsity={algorithm: gmp, schedule: {type: linear, init: 0, slope: 0.5}, "
               "update: {freq: 2}}"),
          2, "the sparsity is 2.0 at step 4, expected a fraction from 0 to 1");
  refuses(with("optimizer={type: adam, warmup: 1000000}"), 2,
          "the learning rate rises over 1000000 steps, and the run ends after 18");
  const Ended smooth = train({"--set", "loss={label_smoothing: 0.1}"});
  EXPECT_EQ(smooth.code, 0) << smooth.err;
  EXPECT_EQ(load_yaml(run_dir() + "/config.yaml").at("loss").at("type").text(), "cross_entropy");
}

TEST_F(HostileInput, OfInputsThatAreTheOutput) {
  train_table();
  const std::string in = folder_ / "in.csv";
  write_text(in, Table(2).without_labels);
  std::filesystem::create_symlink(in, folder_ / "link.csv");
  std::filesystem::create_hard_link(in, folder_ / "same.csv");
  for (const char* out : {"in.csv", "link.csv", "same.csv", "./in.csv"}) {
    refuses({"predict", run_dir(), in, "--out", folder_ / out}, 2, "would be overwritten");
  }
  refuses({"predict", checkpoint(48), in, "--out", checkpoint(48)}, 2, "would be overwritten");
  EXPECT_EQ(read_text(in), Table(2).without_labels);
}

// 50 MB of commas; and a file whose size is a claim.
TEST_F(HostileInput, OfTablesThatAreTooLarge) {
  write_text(folder_ / "commas.csv", std::string(5'000'000, ',') + "\n");
  const auto with_table = [&](const std::string& path) {
    return std::vector<std::string>{"train",   config(), "--run-dir",
                                    run_dir(), "--set",  "data={type: csv, train: " + path + "}"};
  };
  refuses(with_table(folder_ / "commas.csv"), 1, "commas.csv:1:1: the line has more than 524288 f");
  write_text(folder_ / "huge.csv", "a,b\n1,0\n");
  std::filesystem::resize_file(folder_ / "huge.csv", uintmax_t{1} << 42);
  refuses(with_table(folder_ / "huge.csv"), 1,
          "huge.csv: the file has 4.4 TB, and the free memory holds ");
}

}  // namespace
}  // namespace lacuna::hostile_input_test
