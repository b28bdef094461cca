#include "lacuna/framework/train/input_format.h"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/types/text_dataset.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::input_format_test {
namespace {

TEST(InputFormat, KeepsTheTokenizerOfText) {
  const TemporaryFolder folder;
  const std::string path = folder.write("text.txt", "to be or not to be");
  const DataSplits splits =
      load_text(Config::map({{"type", "text"}, {"path", path}, {"context", 4}}), 0);
  const StateDict state = InputFormat::of(splits).state_dict();
  const InputFormat format = InputFormat::from_state(state);
  EXPECT_EQ(format.example_shape, Shape{4});
  ASSERT_NE(format.tokenizer, nullptr);
  EXPECT_EQ(format.tokenizer->kind(), "characters");
  EXPECT_EQ(format.tokenizer->encode("be not"), splits.train->tokenizer()->encode("be not"));
}

TEST(InputFormat, HasNoTokenizerWhereThereIsNoText) {
  const InputFormat format{.example_shape = {2}, .normalization = {}};
  EXPECT_FALSE(format.state_dict().contains("tokenizer"));
  EXPECT_EQ(InputFormat::from_state(format.state_dict()).tokenizer, nullptr);
}

TEST(InputFormat, RefusesASavedTokenizerThatIsNone) {
  StateDict state = InputFormat{.example_shape = {2}, .normalization = {}}.state_dict();
  state.set("tokenizer", std::string(R"({"tokenizer": "words", "tokens": []})"));
  expect_throws<CheckpointError>([&] { InputFormat::from_state(state); },
                                 "the checkpoint's tokenizer cannot be read: ");
}

}  // namespace
}  // namespace lacuna::input_format_test
