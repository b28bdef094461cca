#include "lacuna/framework/core/bit_mask.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

BitMask BitMask::from_words(int64_t size, std::vector<uint64_t> words) {
  if (words.size() != word_count(size)) {
    throw ShapeError(fmt::format("a mask of {} bits has {} words, found {}", size, word_count(size),
                                 words.size()));
  }
  BitMask mask;
  mask.size_ = size;
  mask.words_ = std::move(words);
  mask.clear_rest();
  return mask;
}

}  // namespace lacuna
