#include "lacuna/framework/data/types/masked_text.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/token_sequence.hpp"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/text/tokenizer.h"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"
#include "temporary_folder.h"

namespace lacuna::masked_text_test {
namespace {

using test::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Token i is 10 + i; the mask is 0, [CLS] 1 and [SEP] 2.
MaskedWindows windows(int64_t tokens, WindowOptions options, bool is_framed = false) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens));
  std::iota(ids.begin(), ids.end(), int64_t{10});
  MaskedWindows::Options all{
      .windows = options,
      .masking = {
          .fraction = 0.5, .mask_id = 0, .vocabulary_size = 1000, .special_ids = {0, 1, 2}}};
  if (is_framed) all.cls = 1, all.sep = 2;
  return {tokens_in_memory(ids), 0, tokens, nullptr, all};
}

// What each label of a batch says, and elsewhere the input, that is the text before anything was
// hidden.
std::vector<int64_t> text_of(const Batch& batch) {
  const auto ids = batch.named.at("input_ids").values();
  std::vector<int64_t> text(ids.begin(), ids.end());
  for (size_t i = 0; i < text.size(); ++i) {
    if (batch.labels.values()[i] != kIgnoredLabel) text[i] = batch.labels.values()[i];
  }
  return text;
}
std::vector<int64_t> labels(const Batch& batch) {
  return {batch.labels.values().begin(), batch.labels.values().end()};
}
std::vector<int64_t> inputs(const Batch& batch) {
  const auto values = batch.named.at("input_ids").values();
  return {values.begin(), values.end()};
}
std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

TEST(MaskedWindows, BeginAtEveryTokenThatLeavesRoom) {
  const MaskedWindows data = windows(6, {.context = 4});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.num_classes(), 1000);
  EXPECT_EQ(data.characters_per_label(), 0.0);
  const Batch batch = data.gather(std::vector<int64_t>{2, 0});
  EXPECT_EQ(batch.labels.shape(), (Shape{2, 4}));
  EXPECT_THAT(text_of(batch), ElementsAre(12, 13, 14, 15, 10, 11, 12, 13));
  EXPECT_EQ(std::ranges::count(labels(batch), kIgnoredLabel), 4);  // half of each
}

TEST(MaskedWindows, StandBetweenClsAndSep) {
  const MaskedWindows data = windows(5, {.context = 6, .stride = 1}, true);
  EXPECT_EQ(data.size(), 2);
  const Batch batch = data.gather(std::vector<int64_t>{1});
  EXPECT_THAT(text_of(batch), ElementsAre(1, 11, 12, 13, 14, 2));
  EXPECT_EQ(labels(batch).front(), kIgnoredLabel);
  EXPECT_EQ(labels(batch).back(), kIgnoredLabel);
}

TEST(MaskedWindows, DoNotAskAgainForWhatTheLastWindowShares) {
  const MaskedWindows data = windows(10, {.context = 4, .stride = 4, .to_the_end = true});
  EXPECT_EQ(data.size(), 3);
  const Batch last = data.gather(std::vector<int64_t>{2});
  EXPECT_THAT(text_of(last), ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(labels(last)[0], kIgnoredLabel);  // 16 and 17 are of the second window
  EXPECT_EQ(labels(last)[1], kIgnoredLabel);
  EXPECT_EQ(std::ranges::count(labels(last), kIgnoredLabel), 3);
}

TEST(MaskedWindows, HideOtherTokensInEachEpochOfTrainingAlone) {
  const MaskedWindows data = windows(40, {.context = 30});
  const auto indices = first(3);
  EXPECT_EQ(inputs(data.gather(indices)), inputs(data.gather(indices)));
  const Batch epoch0 = data.gather_for_training(indices, 1, 0);
  EXPECT_EQ(inputs(epoch0), inputs(data.gather_for_training(indices, 1, 0)));
  EXPECT_NE(inputs(epoch0), inputs(data.gather_for_training(indices, 1, 1)));
  EXPECT_NE(inputs(epoch0), inputs(data.gather_for_training(indices, 2, 0)));
  EXPECT_NE(inputs(epoch0), inputs(data.gather(indices)));
  // An example's draws do not hang on what else is in the batch.
  const Batch alone = data.gather_for_training(std::vector<int64_t>{2}, 1, 0);
  const auto all = inputs(epoch0);
  EXPECT_EQ(inputs(alone), (std::vector<int64_t>{all.begin() + 60, all.end()}));
}

TEST(MaskedWindows, ComeFromTheLoaderAsFromTheDataset) {
  const auto data = std::make_shared<const MaskedWindows>(windows(20, {.context = 8}));
  const auto batches = [&](int prefetch, int from) {
    Loader loader(data, {.batch_size = 5, .seed = 4, .prefetch = prefetch});
    if (from > 0) {
      Loader before(data, {.batch_size = 5, .seed = 4, .prefetch = prefetch});
      for (int i = 0; i < from; ++i) before.next();
      loader.load_state(before.state());
    }
    std::vector<std::vector<int64_t>> all;
    for (int i = from; i < 8; ++i) all.push_back(inputs(loader.next()));
    return all;
  };
  const auto whole = batches(0, 0);
  EXPECT_EQ(batches(3, 0), whole);
  const auto rest = batches(2, 4);
  EXPECT_EQ(rest, (std::vector<std::vector<int64_t>>{whole.begin() + 4, whole.end()}));
}

TEST(MaskedWindows, SayWhatDoesNotFit) {
  EXPECT_THAT(message_of<DataError>([] { windows(3, {.context = 4}); }),
              HasSubstr("3 tokens are too few for a window of 4"));
  EXPECT_THAT(message_of<StateError>([] { windows(9, {.context = 2}, true); }),
              HasSubstr("room for a token, found 2"));
  EXPECT_THAT(
      message_of<StateError>([] { windows(9, {.context = 4}).gather(std::vector<int64_t>{6}); }),
      HasSubstr("example 6 is out of range: the dataset has 6"));
}

// Sentences of different lengths: token i of example e is 10 + 20 e + i, padding 3.
std::shared_ptr<LabelledText> sentences() {
  std::vector<std::string> tokens{"[MASK]", "[CLS]", "[SEP]", "[PAD]"};
  while (tokens.size() < 300) tokens.push_back("t" + std::to_string(tokens.size()));
  std::string file;
  for (const std::string& token : tokens) file += token + "\n";
  auto all = std::make_shared<LabelledText>(
      std::make_shared<const WordPieceTokenizer>(
          WordPieceTokenizer::from_file("[UNK]\n" + file.substr(0, file.rfind("t299")), true)),
      20, 2);
  for (int64_t e = 0; e < 6; ++e) {
    std::vector<int64_t> ids(static_cast<size_t>(4 + 3 * e));
    std::iota(ids.begin(), ids.end(), 10 + 20 * e);
    all->add(ids, e % 2);
  }
  return all;
}

MaskedSentences masked_sentences() {
  return {sentences(),
          {.fraction = 0.5, .mask_id = 1, .vocabulary_size = 300, .special_ids = {0, 1, 2, 3, 4}},
          9};
}

TEST(MaskedSentences, HideTokensButNoPadding) {
  const MaskedSentences data = masked_sentences();
  EXPECT_EQ(data.size(), 6);
  EXPECT_EQ(data.num_classes(), 300);
  EXPECT_EQ(data.lengths().size(), 6u);
  const Batch batch = data.gather(std::vector<int64_t>{0, 2}),
              plain = sentences()->gather(std::vector<int64_t>{0, 2});
  EXPECT_EQ(batch.labels.shape(), (Shape{2, 10}));
  EXPECT_EQ(text_of(batch), inputs(plain));
  const auto told = labels(batch);
  EXPECT_EQ(std::count(told.begin(), told.begin() + 10, kIgnoredLabel), 10 - 2);  // of 4 tokens
  EXPECT_EQ(std::count(told.begin() + 10, told.end(), kIgnoredLabel), 5);
  const auto mask = [](const Batch& of) {
    const auto values = of.named.at("attention_mask").values();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  EXPECT_EQ(mask(batch), mask(plain));
}

TEST(MaskedSentences, HideTheSameOfAnExampleInAnyBatch) {
  const MaskedSentences data = masked_sentences();
  const auto row = [](const Batch& batch, size_t index, size_t tokens) {
    const auto all = inputs(batch);
    const auto width = static_cast<size_t>(batch.labels.shape()[1]);
    return std::vector<int64_t>(all.begin() + static_cast<ptrdiff_t>(index * width),
                                all.begin() + static_cast<ptrdiff_t>(index * width + tokens));
  };
  const std::vector<int64_t> alone{3}, longer{5, 3};
  EXPECT_EQ(row(data.gather(alone), 0, 13), row(data.gather(longer), 1, 13));
  const Batch first = data.gather_for_training(alone, 1, 0);
  EXPECT_EQ(inputs(first), row(data.gather_for_training(longer, 1, 0), 1, 13));
  EXPECT_NE(inputs(first), inputs(data.gather_for_training(alone, 1, 1)));
  EXPECT_NE(inputs(first), inputs(data.gather_for_training(alone, 2, 0)));
  EXPECT_NE(inputs(first), inputs(data.gather(alone)));
}

class MaskedText : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  MaskedText() {
    data_.set("type", "text");
    data_.set("path", folder_.write("text.txt", "to be or not to be that is the question"));
    data_.set("context", 4);
    data_.set("mask_fraction", 0.5);
  }
  DataSplits load() { return load_data(data_, 0); }
  std::string error() {
    return message_of<ConfigError>([&] { load(); });
  }

  TemporaryFolder folder_;
  Config data_ = Config::map();
};

TEST_F(MaskedText, GivesWordsAMask) {
  data_.set("tokenizer", "words");
  data_.set("validation", 4);
  const DataSplits splits = load();
  const Tokenizer& tokenizer = *splits.train->tokenizer();
  EXPECT_EQ(tokenizer.token(2), "[MASK]");
  EXPECT_EQ(splits.train->vocabulary_size(), 3 + 4);  // to be or not
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(tokenizer.decode(text_of(splits.train->gather(std::vector<int64_t>{1}))),
            "be or not to");
  EXPECT_EQ(splits.validation->size(), 1);
  // All are [UNK], which is not to be told.
  EXPECT_THAT(labels(splits.validation->gather(std::vector<int64_t>{0})), Each(kIgnoredLabel));
}

TEST_F(MaskedText, TakesAMaskForCharacters) {
  EXPECT_THAT(error(), HasSubstr("the tokenizer 'characters' has no mask"));
  data_.set("mask_token", "_");
  const DataSplits splits = load();
  EXPECT_TRUE(splits.train->tokenizer()->find("_"));
  EXPECT_EQ(
      splits.train->tokenizer()->decode(text_of(splits.train->gather(std::vector<int64_t>{3}))),
      "be o");
  data_.set("mask_token", "[MASK]");
  EXPECT_THAT(error(), HasSubstr("the vocabulary has no token '[MASK]'"));
}

TEST_F(MaskedText, FramesPiecesOfWords) {
  data_.set("tokenizer", "wordpiece");
  const std::string words = "to\nbe\nor\nnot\nthat\nis\nthe\nquest\n##ion\n";
  data_.set("vocab", folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n" + words));
  EXPECT_THAT(error(), HasSubstr("the vocabulary has no token '[MASK]'"));
  data_.set("vocab", folder_.write("all.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words));
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->size(), 10);  // of 11 pieces, two by two
  EXPECT_EQ(
      splits.train->tokenizer()->decode(text_of(splits.train->gather(std::vector<int64_t>{1}))),
      "[CLS] be or [SEP]");
  data_.set("context", 2);
  EXPECT_THAT(error(), HasSubstr("an integer of at least 3, found '2'"));
}

TEST_F(MaskedText, RefusesAFractionThatIsNone) {
  data_.set("tokenizer", "words");
  for (const double fraction : {0.0, 1.0, -0.1}) {
    data_.set("mask_fraction", fraction);
    EXPECT_THAT(error(), HasSubstr("a fraction of the tokens, in (0, 1)"));
  }
  data_.erase("mask_fraction");
  data_.set("mask_token", "[MASK]");
  EXPECT_THAT(error(), HasSubstr("there is no mask_fraction"));
}

TEST_F(MaskedText, OfSentencesHasNoOtherLabels) {
  Config data = Config::map({{"type", "labelled_text"},
                             {"train", folder_.write("train.txt", "1 to be or not\n0 that is\n")},
                             {"validation", folder_.write("dev.txt", "0 to be that\n")},
                             {"mask_fraction", 0.3}});
  const DataSplits splits = load_data(data, 0);
  EXPECT_EQ(splits.train->tokenizer()->token(2), "[MASK]");
  EXPECT_EQ(splits.train->num_classes(), 3 + 6);
  const Batch batch = splits.train->gather(std::vector<int64_t>{1, 0});
  EXPECT_EQ(batch.labels.shape(), (Shape{2, 4}));
  EXPECT_EQ(splits.train->tokenizer()->decode(text_of(batch)), "that is [PAD] [PAD] to be or not");
  EXPECT_EQ(std::ranges::count(labels(batch), kIgnoredLabel), 6);  // one of each is told
  EXPECT_EQ(splits.validation->gather(std::vector<int64_t>{0}).labels.numel(), 3);
  data.set("tokenizer", "characters");
  data.erase("mask_token");  // of words, by default
  EXPECT_THAT(message_of<ConfigError>([&] { load_data(data, 0); }),
              HasSubstr("the tokenizer 'characters' has no mask"));
  data.set("mask_token", "_");
  EXPECT_TRUE(load_data(data, 0).train->tokenizer()->find("_"));
}

TEST_F(MaskedText, OfTokensTakesAnIdForTheMask) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += {static_cast<char>(i), '\0'};
  folder_.write("train.bin", bytes);
  Config data = Config::map({{"type", "tokens"},
                             {"dir", folder_.path()},
                             {"vocab_size", 41},
                             {"context", 8},
                             {"validation", 10},
                             {"mask_fraction", 0.25}});
  const auto refusal = [&] { return message_of<ConfigError>([&] { load_data(data, 0); }); };
  EXPECT_THAT(refusal(), HasSubstr("give mask_id"));
  data.set("mask_id", 41);
  EXPECT_THAT(refusal(), HasSubstr("an id below vocab_size, 41"));
  data.set("mask_id", 40);
  const DataSplits splits = load_data(data, 0);
  EXPECT_EQ(splits.train->num_classes(), 41);
  EXPECT_EQ(splits.train->size(), 23);
  const Batch batch = splits.train->gather(std::vector<int64_t>{3});
  EXPECT_THAT(text_of(batch), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(std::ranges::count(labels(batch), kIgnoredLabel), 6);
  EXPECT_EQ(splits.validation->size(), 2);  // each token may be hidden once
  data.set("mask_token", "x");
  EXPECT_THAT(refusal(), HasSubstr("the tokens have no vocabulary to find it in"));
  data.erase("mask_token");
  data.erase("mask_fraction");
  EXPECT_THAT(refusal(), HasSubstr("there is no mask_fraction"));
}

}  // namespace
}  // namespace lacuna::masked_text_test
