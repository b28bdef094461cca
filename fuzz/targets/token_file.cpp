// A file of 16-bit tokens, held against a vocabulary that the first byte chooses, in windows.
#include "lacuna/framework/data/formats/token_sequence.hpp"
#include "lacuna/framework/data/types/token_windows.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile scratch("tokens");
  if (size == 0) return 0;
  const int64_t vocabulary = 1 + 257 * (data[0] >> 3), context = 1 + (data[0] & 7);
  scratch.write(fuzz::text_of(data + 1, size - 1));
  fuzz::answer([&] {
    const TokenSequencePtr tokens = tokens_of_file(scratch.path(), vocabulary);
    const TokenWindows windows(tokens, 0, tokens->size(), vocabulary, nullptr,
                               {.context = context, .stride = context, .to_the_end = true});
    for (int64_t i = 0; i < windows.size(); ++i) {
      const Batch batch = windows.gather({&i, 1});
      for (const int64_t id : batch.named.at("input_ids").values()) {
        fuzz::require(id >= 0 && id < vocabulary, "a token is outside of the vocabulary");
      }
    }
  });
  return 0;
}
