// tokenizer.json of a run: read, used, written and read again.
#include "lacuna/framework/text/tokenizer.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  answer([&] {
    const TokenizerPtr tokenizer = tokenizer_from_json(fuzz::text_of(data, size));
    const std::string json = tokenizer->to_json();
    fuzz::require(tokenizer_from_json(json)->to_json() == json, "written again it is another one");
    const int64_t count = tokenizer->vocabulary_size();
    for (int64_t id = 0; id < std::min<int64_t>(count, 100); ++id) {
      fuzz::require(tokenizer->find(tokenizer->token(id)).has_value(), "a token is not found");
    }
    answer([&] {
      for (const int64_t id : tokenizer->encode("the aim of it, \xC3\xA9 and 12")) {
        fuzz::require(id >= 0 && id < count, "an id is no token's");
      }
    });
  });
  return 0;
}
