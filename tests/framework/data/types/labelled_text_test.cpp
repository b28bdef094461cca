#include "lacuna/framework/data/types/labelled_text.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/text/tokenizer.h"
#include "test_data.h"

namespace lacuna::labelled_text_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> values(const IndexTensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

class LabelledTextFiles : public ::testing::Test {
 protected:
  LabelledTextFiles() {
    data_.set("type", "labelled_text");
    data_.set("train", folder_.write("train.txt", "1 a b a\n0\tc\n1 a c b a d\r\n\n"));
  }
  Config& set(const std::string& key, const Config& value) {
    data_.set(key, value);
    return data_;
  }
  DataSplits load() { return load_labelled_text(data_, 0); }
  // By load_data, which holds out.
  DataSplits load_all() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
    return load_data(data_, 0);
  }
  std::string error() {
    return message_of<DataError>([&] { load(); });
  }
  std::string config_error() {
    return message_of<ConfigError>([&] { load(); });
  }

  TemporaryFolder folder_;
  Config data_;
};

TEST_F(LabelledTextFiles, PadToTheLongestOfABatch) {
  const auto train = load().train;
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(train->example_shape(), Shape{128});
  EXPECT_EQ(train->num_classes(), 2);
  EXPECT_EQ(train->vocabulary_size(), 6);  // [PAD] [UNK] a b c d
  EXPECT_THAT(train->lengths(), ElementsAre(3, 1, 5));
  const Batch batch = train->gather(std::vector<int64_t>{1, 0});
  EXPECT_EQ(batch.size, 2);
  EXPECT_FALSE(batch.inputs.defined());
  EXPECT_THAT(values(batch.labels), ElementsAre(0, 1));
  EXPECT_EQ(batch.named.at("input_ids").shape(), (Shape{2, 3}));
  EXPECT_THAT(values(batch.named.at("input_ids")), ElementsAre(4, 0, 0, 2, 3, 2));
  EXPECT_THAT(values(batch.named.at("attention_mask")), ElementsAre(1, 0, 0, 1, 1, 1));
  EXPECT_EQ(batch.named.size(), 2u);
  EXPECT_EQ(train->gather(std::vector<int64_t>{1}).named.at("input_ids").shape(), (Shape{1, 1}));
  EXPECT_THAT(message_of<StateError>([&] { train->gather(std::vector<int64_t>{3}); }),
              HasSubstr("example 3 is out of range: the dataset has 3 examples"));
}

TEST_F(LabelledTextFiles, PutClsBeforeTheWordsAndCutOffTheEnd) {
  set("cls", true).set("max_length", 3);
  const auto train = load().train;
  EXPECT_EQ(train->example_shape(), Shape{3});
  EXPECT_THAT(values(train->gather(std::vector<int64_t>{2}).named.at("input_ids")),
              ElementsAre(2, 3, 5));  // [CLS] a c
  EXPECT_THAT(train->lengths(), ElementsAre(3, 2, 3));
}

TEST_F(LabelledTextFiles, StandBetweenClsAndSepOfBert) {
  set("tokenizer", "wordpiece").set("max_length", 4);
  set("vocab", folder_.write("vocab.txt", "x\n[UNK]\n[SEP]\n[CLS]\na\nb\n[PAD]\n"));
  const auto train = load().train;
  const Batch batch = train->gather(std::vector<int64_t>{0, 1, 2});
  EXPECT_THAT(values(batch.named.at("input_ids")), ElementsAre(3, 4, 5, 2, 3, 1, 2, 6, 3, 4, 1, 2));
  EXPECT_THAT(encode_example(*train->tokenizer(), "b", 128), ElementsAre(3, 5, 2));
  EXPECT_THAT(message_of<StateError>([&] { encode_example(*train->tokenizer(), "b", 2); }),
              HasSubstr("a length of 2 leaves no room for a token of the sentence"));
  set("max_length", 2);
  EXPECT_THAT(config_error(), HasSubstr("max_length"));
  set("max_length", 9).set("vocab", folder_.write("few.txt", "[UNK]\n[CLS]\n[PAD]\n"));
  EXPECT_THAT(error(), HasSubstr("few.txt: the vocabulary has no token [SEP]"));
}

TEST_F(LabelledTextFiles, ReadOtherSplitsWithTheVocabularyOfTheFirst) {
  set("validation", folder_.write("dev.txt", "0 d new\n"));
  set("test", folder_.write("test.txt", "1 b\n0 a\n"));
  const DataSplits splits = load_all();
  EXPECT_THAT(values(splits.validation->gather(std::vector<int64_t>{0}).named.at("input_ids")),
              ElementsAre(5, 1));
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.test->tokenizer(), splits.train->tokenizer());
  EXPECT_EQ(splits.train->size(), 3);
}

TEST_F(LabelledTextFiles, HoldOutTrainingExamplesByANumber) {
  set("validation", 1);
  const DataSplits splits = load_all();
  EXPECT_EQ(splits.validation->size(), 1);
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.train->vocabulary_size(), 6);
  EXPECT_NE(splits.train->tokenizer(), nullptr);
  std::vector<int32_t> lengths(splits.train->lengths().begin(), splits.train->lengths().end());
  ASSERT_EQ(lengths.size(), 2u);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(splits.train->gather(std::vector<int64_t>{i}).named.at("input_ids").shape()[1],
              lengths[static_cast<size_t>(i)]);
  }
}

TEST_F(LabelledTextFiles, ReadColumnsOfATable) {
  set("train", folder_.write("t.csv", "id,text,label\n1,\"a, \"\"b\"\"\nc\",2\n2,d,0\n"));
  set("text_column", "text").set("label_column", "label");
  const auto train = load().train;
  EXPECT_EQ(train->num_classes(), 3);
  EXPECT_THAT(train->lengths(), ElementsAre(3, 1));
  EXPECT_EQ(train->tokenizer()->decode(
                values(train->gather(std::vector<int64_t>{0}).named.at("input_ids"))),
            "a, \"b\" c");
  set("text_column", "texts");
  EXPECT_THAT(error(), HasSubstr("t.csv: no column 'texts'; did you mean 'text'?"));
  data_.erase("label_column");
  EXPECT_THAT(config_error(), HasSubstr("text_column and label_column go together"));
}

TEST_F(LabelledTextFiles, HaveNamesOfClasses) {
  const auto expect_names = [&](const char* path) {
    for (const bool streamed : {false, true}) {
      set("train", path).set("streamed", streamed);
      const auto train = load().train;
      EXPECT_THAT(train->class_names(), ElementsAre("awful", "fair", "very good"));
      EXPECT_EQ(train->num_classes(), 3);
      EXPECT_THAT(values(train->gather(std::vector<int64_t>{0, 1, 2, 3}).labels),
                  ElementsAre(2, 0, 1, 2));
    }
  };
  expect_names(folder_.write("l.txt", "very good\ta b\nawful\tc\nfair\td\nvery good\tb\n").c_str());
}

TEST_F(LabelledTextFiles, HaveNamesOfClassesInTables) {
  set("text_column", "text").set("label_column", "label");
  set("train", folder_.write("t.csv", "text,label\na,pos\nb,\" neg \"\nc,\"a \"\"b\"\"\"\nd,7\n"));
  set("test", folder_.write("test.csv", "label,text\nneg,a\n7,b\n"));
  const DataSplits splits = load();
  EXPECT_THAT(splits.train->class_names(), ElementsAre("7", "a \"b\"", "neg", "pos"));
  EXPECT_THAT(values(splits.train->gather(std::vector<int64_t>{0, 1, 2, 3}).labels),
              ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(values(splits.test->gather(std::vector<int64_t>{0, 1}).labels), ElementsAre(2, 0));
  EXPECT_EQ(splits.test->class_names(), splits.train->class_names());
  set("test", folder_.write("bad.csv", "label,text\nneg,a\npositive,b\n"));
  EXPECT_THAT(error(), HasSubstr("bad.csv:3: expected one of the classes of the training data "
                                 "(valid names: 7, a \"b\", neg, pos), found 'positive'"));
  set("test", folder_.write("gap.csv", "label,text\nneg,a\n,b\n"));
  EXPECT_THAT(error(), HasSubstr("gap.csv:3: expected the name of a class"));
  set("num_classes", 2);
  EXPECT_THAT(config_error(), HasSubstr("num_classes: is 2, and the labels of"));
}

TEST_F(LabelledTextFiles, TakeNamesWhereTheyCanBeMeantAlone) {
  set("text_column", "text").set("label_column", "label");
  const auto with = [&](const std::string& key, const std::string& text) {
    set(key, folder_.write(key + ".csv", text));
    return error();
  };
  // A column of numbers, and then none.
  EXPECT_THAT(with("train", "text,label\na,1\nb,neg\n"),
              HasSubstr("train.csv:3: expected a label, an integer from 0"));
  std::string own = "text,label\n";
  for (int i = 0; i < 30; ++i) own += "x,the film number " + std::to_string(i) + "\n";
  EXPECT_THAT(with("train", own), HasSubstr("each of the 30 sentences has a class of its own"));
  set("train", folder_.write("train.csv", "text,label\na,1.0\nb,0\n"));
  EXPECT_EQ(load().train->num_classes(), 2);
  EXPECT_THAT(
      with("test", "text,label\na,neg\n"),
      HasSubstr("test.csv:2: expected an integer label, as in the training data, found 'neg'"));
  EXPECT_THAT(with("test", "text,label\na,0.5\n"), HasSubstr("found '0.5'"));
  data_.erase("text_column");
  data_.erase("label_column");
  data_.erase("test");
  EXPECT_THAT(with("train", "good film\nbad film\n"),
              HasSubstr("found 'good'; the name of a class needs a tab after it, or a CSV file "
                        "with data.text_column and data.label_column"));
}

TEST_F(LabelledTextFiles, MakePairsOfTwoColumns) {
  set("train", folder_.write("p.csv", "s,q,label\na b,c,1\nb,\"a, \"\"c\"\"\",0\n"));
  set("text_column", Config::list({Config("q"), Config("s")})).set("label_column", "label");
  set("cls", true);
  const auto train = load().train;
  const Batch batch = train->gather(std::vector<int64_t>{0, 1});
  const auto decoded = [&](int64_t row) {
    const std::vector<int64_t> ids = values(batch.named.at("input_ids"));
    const int64_t width = batch.named.at("input_ids").shape()[1];
    return train->tokenizer()->decode({ids.begin() + row * width, ids.begin() + (row + 1) * width});
  };
  EXPECT_EQ(decoded(0), "[CLS] c [SEP] a b [SEP]");
  EXPECT_EQ(decoded(1), "[CLS] a, \"c\" [SEP] b [SEP]");
  EXPECT_THAT(values(batch.named.at("token_type_ids")),
              ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(values(batch.labels), ElementsAre(1, 0));
  EXPECT_THAT(load().columns, ElementsAre("q", "s"));

  set("tokenizer", "bytes").erase("cls");
  EXPECT_THAT(config_error(), HasSubstr("two sentences need a [SEP] between them, but the "
                                        "tokenizer 'bytes' has none; choose words or wordpiece"));
  set("tokenizer", "words").set("max_length", 3);
  EXPECT_THAT(config_error(), HasSubstr("max_length: expected an integer of at least 4"));
  set("max_length", 9)
      .set("text_column", Config::list({Config("q"), Config("s"), Config("label")}));
  EXPECT_THAT(config_error(), HasSubstr("the name of a column, or a list of two"));
}

TEST_F(LabelledTextFiles, AreTheSameStreamedFromTheirFile) {
  const auto expect_same = [&] {
    set("streamed", false);
    const auto held = load().train;
    set("streamed", true);
    const auto streamed = load().train;
    EXPECT_EQ(streamed->size(), held->size());
    EXPECT_EQ(streamed->tokenizer()->to_json(), held->tokenizer()->to_json());
    EXPECT_TRUE(std::ranges::equal(streamed->lengths(), held->lengths()));
    std::vector<int64_t> all(static_cast<size_t>(held->size()));
    std::iota(all.rbegin(), all.rend(), 0);
    const Batch expected = held->gather(all), found = streamed->gather(all);
    EXPECT_EQ(values(found.labels), values(expected.labels));
    ASSERT_EQ(found.named.size(), expected.named.size());
    for (const auto& [name, tensor] : expected.named) {
      EXPECT_EQ(values(found.named.at(name)), values(tensor)) << name;
    }
    EXPECT_THAT(message_of<StateError>([&] { streamed->gather(std::vector<int64_t>{-1}); }),
                HasSubstr("example -1 is out of range"));
  };
  expect_same();
  set("tokenizer", "characters");
  expect_same();
  set("tokenizer", "words").set("max_length", 5);
  set("train", folder_.write("p.csv", "s,q,label\na b c d,c,1\nb,\"a, \"\"c\"\"\",0\n"));
  set("text_column", "s").set("label_column", "label");
  expect_same();
  set("text_column", Config::list({Config("q"), Config("s")}));
  expect_same();
}

TEST_F(LabelledTextFiles, StayPlainFilesWhereTheyAreStreamed) {
  EXPECT_EQ(load().train->size(), 3);
  EXPECT_FALSE(data_.required<bool>("streamed"));  // the default, written down
  set("streamed", true);
  set("train", folder_.write("train.txt.gz", "1 a\n0 b\n"));
  EXPECT_THAT(error(), HasSubstr("train.txt.gz: a compressed file cannot be streamed"));
  set("train", folder_.write("bad.txt", "0 a\n1 \xFF\n"));
  EXPECT_THAT(error(), HasSubstr("bad.txt:2: byte 0 (line 1): the byte 0xff"));
  set("train", folder_.write("none.txt", "\n"));
  EXPECT_THAT(error(), HasSubstr("none.txt: there are no sentences in the file"));
  set("train", folder_ / "absent");
  EXPECT_THAT(error(), HasSubstr("absent: cannot be opened"));
}

TEST_F(LabelledTextFiles, KnowAllCharactersOfALongText) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "1 " + std::string(60000, static_cast<char>('a' + i % 20)) + "\n0 z\n";
  set("train", folder_.write("long.txt", text)).set("tokenizer", "characters");
  EXPECT_EQ(load().train->vocabulary_size(), 21);
}

TEST_F(LabelledTextFiles, NameTheLineThatIsWrong) {
  const auto with = [&](std::string_view text) {
    set("train", folder_.write("bad.txt", text));
    return error();
  };
  EXPECT_THAT(with("0 a\nno\n"), HasSubstr("bad.txt:2: expected a label, a space or tab, and a"));
  EXPECT_THAT(with("0 a\n\n1 b\n"), HasSubstr("bad.txt:2: expected a label"));
  EXPECT_THAT(with("0 a\nx b\n"), HasSubstr("bad.txt:2: expected a label, an integer from 0"));
  EXPECT_THAT(with("0 a\n-1 b\n"), HasSubstr("found '-1'"));
  EXPECT_THAT(with("0 a\n99999999999999999999 b\n"), HasSubstr("bad.txt:2: expected a label"));
  EXPECT_THAT(with("0 a\n1 \xFF\n"), HasSubstr("bad.txt:2: byte 0 (line 1): the byte 0xff"));
  EXPECT_THAT(with("0 a\n1  \n"), HasSubstr("bad.txt:2: there are no tokens in the sentence"));
  EXPECT_THAT(with(""), HasSubstr("bad.txt: there are no sentences in the file"));
  set("train", folder_ / "none");
  EXPECT_THAT(error(), HasSubstr("none: cannot be opened"));
}

TEST_F(LabelledTextFiles, RefuseALabelThatIsNoClassOfTheFirstFile) {
  set("test", folder_.write("test.txt", "0 a\n2 a\n"));
  EXPECT_THAT(error(), HasSubstr("test.txt:2: label 2 is outside of [0, 2)"));
  set("num_classes", 3);
  EXPECT_EQ(load().test->num_classes(), 3);
}

TEST_F(LabelledTextFiles, RefuseAnUnknownTokenizer) {
  set("tokenizer", "word");
  EXPECT_THAT(config_error(), HasSubstr("unknown tokenizer 'word'; did you mean 'words'?"));
}

TEST_F(LabelledTextFiles, ContinueExactlyInTheMiddleOfAnEpoch) {
  std::string text;
  for (int i = 0; i < 331; ++i) {
    text += std::to_string(i % 2);
    for (int word = 0; word < 1 + i * 7 % 23; ++word) text += " w" + std::to_string(i);
    text += "\n";
  }
  set("train", folder_.write("many.txt", text));
  const auto train = load().train;
  const LoaderOptions options{.batch_size = 3, .seed = 4};
  for (const int before : {1, 60, 110, 111, 150}) {
    Loader loader(train, options);
    for (int i = 0; i < before; ++i) loader.next();
    Loader other(train, options);
    other.load_state(loader.state());
    for (int i = 0; i < 120; ++i) {
      const Batch expected = loader.next(), found = other.next();
      ASSERT_EQ(values(found.named.at("input_ids")), values(expected.named.at("input_ids")));
      ASSERT_EQ(values(found.labels), values(expected.labels));
    }
  }
}

TEST(LabelledText, RefusesWhatItCannotHold) {
  EXPECT_THAT(message_of<StateError>([] { LabelledText(nullptr, 3, 2); }),
              HasSubstr("need a tokenizer"));
  LabelledText text(tokenizer_from_json(R"({"tokenizer": "bytes"})"), 2, 2);
  EXPECT_THAT(message_of<StateError>([&] { text.add({}, 0); }), HasSubstr("0 tokens"));
  EXPECT_THAT(message_of<StateError>([&] {
                text.add(std::vector<int64_t>{1, 2, 3}, 0);
              }),
              HasSubstr("a sentence has 3 tokens; expected 1 to 2"));
  EXPECT_THAT(message_of<StateError>([&] { text.add(std::vector<int64_t>{1}, 2); }),
              HasSubstr("label 2 is outside of [0, 2)"));
  EXPECT_THAT(message_of<DataError>([&] { text.add(std::vector<int64_t>{256}, 0); }),
              HasSubstr("id 256"));
  text.add(std::vector<int64_t>{1}, 0);
  const EncodedPair pair{.ids = {1, 2}, .first = 1};
  EXPECT_THAT(message_of<StateError>([&] { text.add_pair(pair, 0); }),
              HasSubstr("examples of one sentence cannot be mixed with examples of two"));
  LabelledText pairs(tokenizer_from_json(R"({"tokenizer": "bytes"})"), 2, 2);
  pairs.add_pair(pair, 0);
  EXPECT_THAT(message_of<StateError>([&] { pairs.add(std::vector<int64_t>{1}, 0); }),
              HasSubstr("examples of two sentences cannot be mixed with examples of one"));
  EXPECT_THAT(message_of<StateError>([&] { pairs.add_pair({.ids = {1}, .first = 2}, 0); }),
              HasSubstr("2 of 1 tokens cannot belong to the first sentence"));
}

TEST(LabelledText, RealSentencesOfSst2) {
  const std::optional<std::string> folder = data_folder("text");
  if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with text/ (sst2.train.txt, …)";
  const Config data = Config::map({{"type", "labelled_text"},
                                   {"train", *folder + "/sst2.train.txt"},
                                   {"validation", *folder + "/sst2.dev.txt"},
                                   {"test", *folder + "/sst2.test.txt"}});
  const DataSplits splits = load_labelled_text(data, 0);
  EXPECT_EQ(splits.train->size(), 6920);
  EXPECT_EQ(splits.validation->size(), 872);
  EXPECT_EQ(splits.test->size(), 1821);
  EXPECT_EQ(splits.train->num_classes(), 2);
  EXPECT_EQ(splits.train->tokenizer()->token(2), ".");
  const Batch first = splits.validation->gather(std::vector<int64_t>{0});
  EXPECT_EQ(first.labels.values()[0], 0);
  EXPECT_EQ(splits.train->tokenizer()->decode(values(first.named.at("input_ids"))),
            "one long string of cliches .");
}

}  // namespace
}  // namespace lacuna::labelled_text_test
