#include "lacuna/framework/data/changes/token_masking.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {
namespace {

// The draws of a token, each at a place of its own.
enum TokenDraw : uint64_t { kIsChosen, kFate, kToken, kDrawsOfAToken };

// A token that is not special, each as likely as any other.
int64_t random_token(const TokenMasking& masking, const CounterRng& rng, uint64_t place) {
  const auto specials = static_cast<int64_t>(masking.special_ids.size());
  if (masking.vocabulary_size <= specials) return masking.mask_id;
  auto id = static_cast<int64_t>(
      rng.below(place, static_cast<uint64_t>(masking.vocabulary_size - specials)));
  for (const int64_t special : masking.special_ids) {
    if (id >= special) ++id;
  }
  return id;
}

}  // namespace

void mask_tokens(std::span<int64_t> ids, std::span<int64_t> labels, const TokenMasking& masking,
                 const CounterRng& rng, uint64_t example) {
  for (int64_t& label : labels) {
    if (std::ranges::binary_search(masking.special_ids, label)) label = kIgnoredLabel;
  }
  const auto length = static_cast<int64_t>(labels.size());
  int64_t open = length - std::ranges::count(labels, kIgnoredLabel);  // not yet decided
  if (open == 0) return;
  const auto wanted =
      static_cast<int64_t>(std::llround(masking.fraction * static_cast<double>(open)));
  int64_t missing = std::clamp<int64_t>(wanted, 1, open);
  const auto place_of = [&](size_t i) { return (example * labels.size() + i) * kDrawsOfAToken; };
  const auto decide = [&](size_t i, uint64_t drawn) {
    if (drawn >= static_cast<uint64_t>(missing)) {
      labels[i] = kIgnoredLabel;
      return;
    }
    --missing;
    const uint64_t fate = rng.below(place_of(i) + kFate, 10);
    if (fate < 8) ids[i] = masking.mask_id;
    if (fate == 8) ids[i] = random_token(masking, rng, place_of(i) + kToken);
  };
  constexpr size_t kDrawn = 128;  // at a time
  std::array<size_t, kDrawn> tokens;
  std::array<uint64_t, kDrawn> numbers;
  std::array<uint32_t, 4 * kDrawn> words;
  for (size_t next = 0; open > 0;) {
    size_t count = 0;
    for (; count < std::min(kDrawn, static_cast<size_t>(open)); ++next) {
      if (labels[next] == kIgnoredLabel) continue;
      numbers[count] = place_of(next) + kIsChosen;
      tokens[count++] = next;
    }
    draw_blocks(rng, std::span(numbers).first(count), words);
    for (size_t i = 0; i < count; ++i) {
      // Of those that are open, each is as likely to be among the missing.
      const auto candidates = static_cast<uint64_t>(open--);
      decide(tokens[i], CounterRng::below_of(drawn_block(words, i), candidates));
    }
  }
}

}  // namespace lacuna
