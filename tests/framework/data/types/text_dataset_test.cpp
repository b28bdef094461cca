#include "lacuna/framework/data/types/text_dataset.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <optional>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/data/types/token_windows.hpp"
#include "lacuna/framework/text/tokenizer.h"
#include "test_data.h"

namespace lacuna::text_dataset_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> inputs(const Batch& batch) {
  const auto values = batch.named.at("input_ids").values();
  return {values.begin(), values.end()};
}

// The text of example `index`, and of what is to be predicted from it.
std::string text_of(const Dataset& dataset, int64_t index) {
  return dataset.tokenizer()->decode(inputs(dataset.gather(std::vector<int64_t>{index})));
}
std::string next_of(const Dataset& dataset, int64_t index) {
  const Batch batch = dataset.gather(std::vector<int64_t>{index});
  std::vector<int64_t> ids;
  for (const int64_t label : batch.labels.values()) {
    if (label != kIgnoredLabel) ids.push_back(label);
  }
  return dataset.tokenizer()->decode(ids);
}

int64_t tokens_in(const std::shared_ptr<const Dataset>& dataset) {
  return dynamic_cast<const TokenWindows&>(*dataset).tokens();
}

class LongText : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  LongText() {
    data_.set("type", "text");
    data_.set("path", folder_.write("text.txt", "abcdefghijklmnopqrst"));
    data_.set("context", 3);
  }
  Config& set(const std::string& key, const Config& value) {
    data_.set(key, value);
    return data_;
  }
  DataSplits load() { return load_data(data_, 0); }
  std::string error() {
    return message_of<DataError>([&] { load(); });
  }
  std::string config_error() {
    return message_of<ConfigError>([&] { load(); });
  }

  TemporaryFolder folder_;
  Config data_;
};

TEST_F(LongText, TrainOnEveryWindow) {
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 17);
  EXPECT_EQ(splits.train->vocabulary_size(), 20);
  EXPECT_EQ(splits.train->num_classes(), 20);
  EXPECT_EQ(splits.train->tokenizer()->kind(), "characters");
  EXPECT_EQ(text_of(*splits.train, 16), "qrs");
  EXPECT_EQ(next_of(*splits.train, 16), "rst");
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.test, nullptr);
  EXPECT_EQ(data_.required<std::string>("tokenizer"), "characters");
}

TEST_F(LongText, HoldOutTheEnd) {
  set("validation", 0.25).set("test", 4);
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 8);  // a … k
  EXPECT_EQ(next_of(*splits.train, 7), "ijk");
  EXPECT_EQ(tokens_in(splits.validation), 5);
  EXPECT_EQ(splits.validation->size(), 2);
  EXPECT_EQ(text_of(*splits.validation, 0), "lmn");
  EXPECT_EQ(next_of(*splits.validation, 0), "mno");
  EXPECT_EQ(text_of(*splits.validation, 1), "mno");
  EXPECT_EQ(next_of(*splits.validation, 1), "p");  // the others were predicted before
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(next_of(*splits.test, 0), "rst");
}

TEST_F(LongText, RoundFractionsUp) {
  set("context", 1);
  for (const auto& [fraction, count] :
       {std::pair{0.1, 2}, {0.11, 3}, {0.15, 3}, {0.5, 10}, {0.3, 6}, {0.7, 14}}) {
    set("validation", fraction);
    EXPECT_EQ(tokens_in(load().validation), count) << fraction;
  }
}

TEST_F(LongText, TestOnAFileOfItsOwn) {
  set("test", folder_.write("test.txt", "tsrq"));
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 17);
  EXPECT_EQ(next_of(*splits.test, 0), "srq");
  set("test", folder_.write("test.txt", "tsr!"));
  EXPECT_THAT(error(), HasSubstr("test.txt: byte 3 (line 1): the character '!'"));
}

TEST_F(LongText, AreOneTextInAFolder) {
  std::filesystem::create_directory(folder_ / "many");
  folder_.write("many/2.txt", "cd");
  folder_.write("many/1.txt", "ab");
  set("path", folder_ / "many");
  EXPECT_EQ(next_of(*load().train, 0), "bcd");
  folder_.write("many/3.txt", "e\n\xFF");
  EXPECT_THAT(error(), HasSubstr("many/3.txt: byte 2 (line 2): the byte 0xff is not UTF-8"));
}

TEST_F(LongText, AreBytesWithoutBeingRead) {
  set("path", folder_.write("any.bin", "\xFF\xFE\x01\x02z")).set("tokenizer", "bytes");
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->vocabulary_size(), 256);
  EXPECT_THAT(inputs(splits.train->gather(std::vector<int64_t>{1})), ElementsAre(0xFE, 1, 2));
  set("path", test::write_gzip(folder_ / "any.gz", "abcd"));
  EXPECT_EQ(next_of(*load().train, 0), "bcd");
}

TEST_F(LongText, KnowTheWordsOfTheTrainingSplitAlone) {
  set("path", folder_.write("words.txt", "a b a b\nA c a b new words"));
  set("tokenizer", "words").set("validation", 2);
  set("context", 1).set("min_count", 2);
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->vocabulary_size(), 4);  // [PAD] [UNK] a b
  EXPECT_EQ(text_of(*splits.train, 5), "[UNK]");
  EXPECT_EQ(text_of(*splits.validation, 0), "[UNK]");
  EXPECT_EQ(next_of(*splits.train, 3), "a");
  set("max_size", 2);
  EXPECT_THAT(config_error(), HasSubstr("max_size: expected 0 (no bound), or room for"));
  set("max_size", 3);
  EXPECT_EQ(load().train->vocabulary_size(), 3);
}

TEST_F(LongText, AreCutByGivenVocabularies) {
  set("path", folder_.write("t.txt", "aab aab aa"));
  set("vocab", folder_.write("vocab.json", R"({"a": 0, "b": 1, "aa": 2, "\u0120": 3})"));
  set("merges", folder_.write("merges.txt", "a a\n")).set("tokenizer", "bpe");
  EXPECT_THAT(inputs(load().train->gather(std::vector<int64_t>{0})), ElementsAre(2, 1, 3));
  set("merges", folder_.write("merges.txt", "a a\na b\n"));
  EXPECT_THAT(error(), HasSubstr("merges.txt:2: the vocabulary has no token 'ab'"));
  data_.erase("merges");
  EXPECT_THAT(config_error(), HasSubstr("merges: a required key is missing"));
  set("tokenizer", "wordpiece").set("vocab", folder_.write("v.txt", "[UNK]\naab\na\n##a\n"));
  EXPECT_THAT(inputs(load().train->gather(std::vector<int64_t>{0})), ElementsAre(1, 1, 2));
  set("vocab", folder_.write("v.txt", "[UNK]\na\na\n"));
  EXPECT_THAT(error(), HasSubstr("v.txt: line 3: the token 'a' is already there, at line 2"));
}

TEST_F(LongText, RefuseWhatLeavesNoWindow) {
  set("validation", 0.1);
  EXPECT_THAT(error(), HasSubstr("text.txt: the validation split: 2 tokens are too few for a "
                                 "window of 3 and the token after it"));
  set("validation", 18);
  EXPECT_THAT(error(), HasSubstr("text.txt: the training split: 2 tokens are too few"));
  set("validation", 20);
  EXPECT_THAT(config_error(), HasSubstr("holds out 20 of 20 tokens"));
  set("validation", -1);
  EXPECT_THAT(config_error(), HasSubstr("validation: expected a count of tokens"));
  set("validation", 1.5);
  EXPECT_THAT(config_error(), HasSubstr("validation: expected a count of tokens"));
  set("validation", 1.0);
  EXPECT_THAT(config_error(), HasSubstr("validation: expected a count of tokens"));
  set("validation", 0).set("context", 0);
  EXPECT_THAT(config_error(), HasSubstr("context"));
}

TEST_F(LongText, RefuseTextThatIsNone) {
  set("path", folder_.write("empty", ""));
  EXPECT_THAT(error(), HasSubstr("empty: the text is empty"));
  set("tokenizer", "bytes");
  EXPECT_THAT(error(), HasSubstr("empty: the file is empty"));
  set("tokenizer", "characters").set("path", folder_.write("one", "aaaaaa"));
  EXPECT_THAT(error(), HasSubstr("one: the text has only one token, 'a'"));
  set("path", folder_ / "none");
  EXPECT_THAT(error(), HasSubstr("none: cannot be opened"));
}

TEST_F(LongText, AreNeitherNormalizedNorAugmented) {
  set("normalize", "none");
  EXPECT_THAT(config_error(),
              HasSubstr("normalize: this key does not apply to inputs that are tokens"));
  data_.erase("normalize");
  set("augment", Config::map({{"flip", true}}));
  EXPECT_THAT(config_error(),
              HasSubstr("augment: this key does not apply to inputs that are tokens"));
}

TEST_F(LongText, KeepTheirVocabularyUnderALimit) {
  set("limit", 5);
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 5);
  EXPECT_EQ(splits.train->vocabulary_size(), 20);
  EXPECT_EQ(splits.train->tokenizer()->vocabulary_size(), 20);
  EXPECT_EQ(text_of(*splits.train, 4), "efg");
}

// Tokens 0, 1, 2, … in 16 bits.
std::string counted_tokens(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += static_cast<char>(i & 255);
    bytes += static_cast<char>(i >> 8);
  }
  return bytes;
}

class TokenFiles : public LongText {
 protected:
  TokenFiles() {
    data_ = Config::map({{"type", "tokens"}, {"dir", folder_.path()}, {"context", 4}});
    folder_.write("train.bin", counted_tokens(400));
  }
};

TEST_F(TokenFiles, AreReadByWindows) {
  folder_.write("val.bin", counted_tokens(10));
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 396);
  EXPECT_EQ(splits.train->vocabulary_size(), 50257);
  EXPECT_EQ(splits.train->tokenizer(), nullptr);
  EXPECT_THAT(inputs(splits.train->gather(std::vector<int64_t>{255})),
              ElementsAre(255, 256, 257, 258));
  EXPECT_EQ(splits.validation->size(), 3);
  EXPECT_EQ(splits.test, nullptr);
  folder_.write("test.bin", counted_tokens(5));
  EXPECT_EQ(load().test->size(), 1);
}

TEST_F(TokenFiles, HoldOutTheEndWhereNoFileIs) {
  set("validation", 0.1);
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 356);
  EXPECT_THAT(inputs(splits.validation->gather(std::vector<int64_t>{0})),
              ElementsAre(360, 361, 362, 363));
  folder_.write("val.bin", counted_tokens(10));
  EXPECT_THAT(config_error(), HasSubstr("val.bin' exists; leave this key out"));
}

TEST_F(TokenFiles, AreHeldAgainstTheVocabularyWhenTheyAreRead) {
  set("vocab_size", 300);
  EXPECT_THAT(message_of<DataError>([&] { load(); }),
              HasSubstr("train.bin: the token 300 at position 300 (byte 600) is outside of the "
                        "vocabulary's [0, 300)"));
  for (const int size : {0, 65537}) {
    set("vocab_size", size);
    EXPECT_THAT(config_error(), HasSubstr("vocab_size: expected 1 to 65536"));
  }
}

TEST_F(TokenFiles, KeepAVocabularyThatIsGiven) {
  set("vocab", folder_.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})"));
  set("merges", folder_.write("merges.txt", "a b\n"));
  EXPECT_EQ(load().train->tokenizer()->token(1), "b");
  set("vocab_size", 1);
  EXPECT_THAT(config_error(), HasSubstr("the vocabulary in data.vocab has 3 tokens"));
}

TEST_F(TokenFiles, RefuseFilesThatAreCutOff) {
  folder_.write("train.bin", counted_tokens(40) + "x");
  EXPECT_THAT(error(), HasSubstr("train.bin: 81 bytes are not a whole number of 16-bit tokens"));
  folder_.write("train.bin", counted_tokens(4));
  EXPECT_THAT(error(), HasSubstr("train.bin: the training split: 4 tokens are too few"));
  folder_.write("train.bin", "");
  EXPECT_THAT(error(), HasSubstr("train.bin: the file is empty"));
  std::filesystem::remove(folder_ / "train.bin");
  EXPECT_THAT(error(), HasSubstr("train.bin: no such file; data.dir must hold train.bin"));
}

TEST(Text, RealShakespeareHas65Characters) {
  const std::optional<std::string> folder = data_folder("text");
  if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with text/ (tinyshakespeare.txt)";
  const DataSplits splits = load_text(
      Config::map(
          {{"type", "text"}, {"path", *folder + "/tinyshakespeare.txt"}, {"validation", 0.1}}),
      0);
  EXPECT_EQ(splits.train->vocabulary_size(), 65);
  EXPECT_EQ(tokens_in(splits.train) + tokens_in(splits.validation), 1115394);
  EXPECT_EQ(tokens_in(splits.train), 1003854);  // as nanoGPT splits it
  EXPECT_EQ(splits.train->size(), 1003854 - 64);
  EXPECT_EQ(splits.validation->size(), (111540 - 1 + 63) / 64);
  EXPECT_EQ(text_of(*splits.train, 0).substr(0, 14), "First Citizen:");
  Loader loader(splits.train, {.batch_size = 2});
  EXPECT_EQ(loader.next().named.at("input_ids").shape(), (Shape{2, 64}));
}

}  // namespace
}  // namespace lacuna::text_dataset_test
