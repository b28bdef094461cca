// Texts, packed or not, that take much of the memory there is or hold more than it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "framework/program/runs.h"

namespace lacuna::unpacked_size_test {
namespace {

class LargeTexts : public RunFixture {
 protected:
  void write_config(const std::string& text, const std::string& tokenizer) const {
    write_text(config(),
               "data: {type: text, path: " + text + ", tokenizer: " + tokenizer +
                   ", context: 8}\n" +
                   "model: {type: gpt2, n_layer: 1, n_head: 1, n_embd: 8, n_positions: 8}\n" +
                   "optimizer: {type: sgd, lr: 0.1}\ntrain: {steps: 1}\n");
  }
};

// A limit of address space leaves nothing of what a sanitizer needs.
#ifndef __SANITIZE_ADDRESS__
TEST_F(LargeTexts, APackedTextLargerThanTheMemoryIsRefused) {
  const std::string path = folder_ / "text.txt.gz";
  gzFile file = ::gzopen(path.c_str(), "wb1");
  const std::string piece(1 << 20, 'a');
  for (int i = 0; i < 800; ++i) ::gzwrite(file, piece.data(), static_cast<unsigned>(piece.size()));
  ::gzclose(file);
  write_config(path, "bytes");
  const Ended ended = train({"--threads", "1"}, "run", {.max_address_bytes = int64_t{600} << 20});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, testing::HasSubstr(
                             "text.txt.gz: what is packed in it is larger than the free memory"));
}

TEST_F(LargeTexts, APlainTextLargerThanTheMemoryIsNoPackedOne) {
  const std::string path = folder_ / "text.txt";
  write_text(path, std::string(300 << 20, 'a'));
  write_config(path, "characters");
  const Ended ended = train({"--threads", "1"}, "run", {.max_address_bytes = int64_t{400} << 20});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, testing::HasSubstr("text.txt: the text is larger than the free memory"));
}

// A byte of it, twice as long as it is read, and two for the token that it becomes: not the eight
// of an id of each besides.
TEST_F(LargeTexts, ATextOfCharactersTakesFewBytesOfEach) {
  std::string text;
  while (text.size() < (size_t{48} << 20)) text += "to be, or not to be: that is the question\n";
  write_text(folder_ / "play.txt", text);
  write_config(folder_ / "play.txt", "characters");
  const Ended ended = train({"--threads", "1"}, "run", {.max_address_bytes = int64_t{450} << 20});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Ended less = train({"--threads", "1"}, "other", {.max_address_bytes = int64_t{190} << 20});
  EXPECT_EQ(less.code, 1);
  EXPECT_THAT(
      less.err,
      testing::HasSubstr("play.txt: its 50331666 tokens need 101 MB, but the free memory holds "));
}
#endif

}  // namespace
}  // namespace lacuna::unpacked_size_test
