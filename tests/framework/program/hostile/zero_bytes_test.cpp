// Texts with a zero byte, in every kind of file that texts are read from: messages go on behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "framework/program/runs.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna::zero_bytes_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// A zero byte, where it stands in a literal as |.
std::string zeroed(std::string text) {
  for (char& c : text) c = c == '|' ? '\0' : c;
  return text;
}

constexpr const char* kTable = R"(
data: {type: csv, train: FOLDER/t.csv}
model: [{type: linear, name: fc, out_features: 2}]
optimizer: {type: sgd, lr: 0.1}
train: {steps: 1, threads: 1}
)";
constexpr const char* kSentences = R"(
data: {type: labelled_text, train: FOLDER/l.txt, max_length: 8}
model: {type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 1, intermediate_size: 8}
optimizer: {type: sgd, lr: 0.1}
train: {steps: 1, threads: 1}
)";

class ZeroBytes : public RunFixture {
 protected:
  void SetUp() override {
    file("t.csv", "a,b,k\n1,2,0\n3,4,1\n");
    file("l.txt", "0 a b\n1 c d\n");
    file("vocab.json", R"({"a": 0, "b": 1})");
    file("merges.txt", "#version: 0.2\n");
    use(kTable);
  }
  void file(const std::string& name, const std::string& text) const {
    write_text(folder_ / name, zeroed(text));
  }
  void use(std::string yaml) const {
    for (size_t at; (at = yaml.find("FOLDER")) != std::string::npos;) {
      yaml.replace(at, 6, folder_.path());
    }
    write_text(config(), yaml);
  }
  // The message names what is behind the zero byte ("behind"), in letters alone.
  static void told(const Ended& ended) {
    EXPECT_THAT(ended.code, AnyOf(1, 2));
    EXPECT_THAT(ended.err, HasSubstr("\\x00behind"));
    EXPECT_EQ(ended.err.find('\0'), std::string::npos);
    EXPECT_EQ(ended.err.back(), '\n');
  }
  Ended import_of(const std::string& name) const {
    return run_lacuna({"import", folder_ / name, "--config", config(), "--out", run_dir()});
  }
};

TEST_F(ZeroBytes, OfConfigurations) {
  const std::string yaml = kTable;
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string changed = yaml;
    changed.replace(changed.find(what), what.size(), instead);
    use(changed);
    told(train());
  };
  with("lr:", R"("l\0behind":)");
  with("sgd", R"("s\0behind")");
  with("name: fc", R"(name: "fc\0behind")");
  with("FOLDER/t.csv", R"("t\0behind.csv")");
  with("train: {steps", R"(run_dir: "r\0behind"
train: {steps)");
  use(yaml);
  told(train({"--set", R"(optimizer.type="s\0behind")"}));
}

TEST_F(ZeroBytes, OfTables) {
  file("t.csv", "a,b,k\n1,2,0\n3,4|behind,1\n");
  told(train());
  file("t.csv", "a,b,k\n1,2,x\n3,4,y|behind\n");
  told(train());
}

TEST_F(ZeroBytes, OfTexts) {
  use(kSentences);
  file("l.txt", "0 a\nx|behind b\n");
  told(train());
  file("l.txt", "0 a\n1 b\n");
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhe|behind\nhe|behind\n");
  told(train(
      {"--set", "data.tokenizer=wordpiece", "--set", "data.vocab=" + (folder_ / "vocab.txt")}));
  const std::vector<std::string> bpe = {"--set", "data.tokenizer=bpe",
                                        "--set", "data.vocab=" + (folder_ / "vocab.json"),
                                        "--set", "data.merges=" + (folder_ / "merges.txt")};
  for (const char* vocabulary : {R"({"a\u0000behind": 0, "a\u0000behind": 1})",
                                 R"({"a\u0000behind": 1})", R"({"a\u0000behind": 0, "b": 0})",
                                 R"({"a\u0000behind": "x"})", R"({"a\u0000behind": 0})"}) {
    file("vocab.json", vocabulary);
    told(train(bpe));
  }
  file("vocab.json", R"({"a": 0, "b": 1})");
  for (const char* merges : {"#version: 0.2\na|behind b\n", "#version: 0.2\na|behind\n"}) {
    file("merges.txt", merges);
    told(train(bpe));
  }
}

TEST_F(ZeroBytes, OfWeights) {
  const auto safetensors = [&](const std::string& header) {
    std::string text(8, '\0');
    for (size_t i = 0; i < 2; ++i) text[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    write_text(folder_ / "w.safetensors", text + header + "0000");
    told(import_of("w.safetensors"));
  };
  safetensors(R"({"fc\u0000behind": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})");
  safetensors(R"({"fc": {"dtype": "F\u0000behind", "shape": [1], "data_offsets": [0, 4]}})");
  safetensors(R"({"fc": {"x\u0000behind": "F32", "shape": [1], "data_offsets": [0, 4]}})");
  safetensors(
      R"({"__metadata__": {"a": "a\u0000behind"}, "fc": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})");

  write_npz(folder_ / "w.npz", {{.name = "fc|behind", .value = Tensor::zeros({2, 2})}});
  std::string archive = read_text(folder_ / "w.npz");
  for (size_t at; (at = archive.find("fc|behind")) != std::string::npos;) archive[at + 2] = '\0';
  write_text(folder_ / "w.npz", archive);
  told(import_of("w.npz"));
}

}  // namespace
}  // namespace lacuna::zero_bytes_test
