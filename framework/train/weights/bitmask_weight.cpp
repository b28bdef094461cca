#include "lacuna/framework/train/weights/bitmask_weight.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

std::vector<int32_t> bitmask_words(const BitMask& mask) {
  std::vector<int32_t> words(static_cast<size_t>((mask.size() + 31) / 32));
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<int32_t>(static_cast<uint32_t>(mask.words()[i / 2] >> (i % 2 * 32)));
  }
  return words;
}

BitMask bitmask_of(const Shape& shape, std::span<const int64_t> words, int64_t count) {
  const auto expected = static_cast<size_t>((shape.numel() + 31) / 32);
  if (words.size() != expected) {
    throw DataError(fmt::format("expected {} words of 32 bits for shape {}, found {}", expected,
                                shape.to_string(), words.size()));
  }
  BitMask mask = BitMask::zeros(shape.numel());
  for (size_t i = 0; i < words.size(); ++i) {
    const auto bits = static_cast<uint32_t>(static_cast<int32_t>(words[i]));
    const auto first = static_cast<int64_t>(i) * 32;
    const int64_t left = shape.numel() - first;
    if (left < 32 && bits >> left != 0) {
      throw DataError("a bit is set after the last position");
    }
    mask.set_in_word(first / 64, uint64_t{bits} << (first % 64));
  }
  if (count != mask.count()) {
    throw DataError(fmt::format("{} values for {} positions", count, mask.count()));
  }
  return mask;
}

void add_bitmask_weight(const Shape& shape, std::span<const int64_t> words, const Tensor& data,
                        const std::string& as, StateDict& state) {
  const BitMask mask = bitmask_of(shape, words, data.numel());
  Tensor dense = Tensor::zeros(shape);
  const float* from = data.data();
  float* into = dense.mutable_data();
  mask.for_each([&](int64_t position) { into[position] = *from++; });
  state.set(as, dense);
  state.set(as + "_mask", ByteArray{.shape = shape, .values = mask.to_bytes()});
}

}  // namespace lacuna
