// Other tools' vocabularies, as data.vocab and data.merges name them: vocab.json and merges.txt
// (behind a byte 0xFF), or WordPiece's vocab.txt.
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

namespace {

void use(const Tokenizer& tokenizer) {
  answer([&] { tokenizer.decode(tokenizer.encode("the lowest low, newer \xC3\xA9")); });
  fuzz::require(tokenizer_from_json(tokenizer.to_json())->to_json() == tokenizer.to_json(),
                "written as JSON it is another one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
  answer([&] { use(BpeTokenizer::from_files(parts[0], parts[1])); });
  answer([&] { use(WordPieceTokenizer::from_file(parts[0], true)); });
  answer([&] { use(WordPieceTokenizer::from_file(parts[0], false)); });
  return 0;
}
