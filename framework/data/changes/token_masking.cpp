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

// Replaces the chosen tokens, each by its own draws.
void replace_chosen(std::span<const size_t> chosen, std::span<int64_t> ids,
                    const TokenMasking& masking, const CounterRng& rng, uint64_t first_place) {
  const auto place_of = [&](size_t i) { return (first_place + i) * kDrawsOfAToken; };
  std::vector<uint64_t> numbers;
  numbers.reserve(chosen.size());
  for (const size_t i : chosen) numbers.push_back(place_of(i) + kFate);
  std::vector<uint32_t> words(4 * numbers.size());
  draw_blocks(rng, numbers, words);
  for (size_t c = 0; c < chosen.size(); ++c) {
    const size_t i = chosen[c];
    const uint64_t fate = CounterRng::below_of(drawn_block(words, c), 10);
    if (fate < 8) ids[i] = masking.mask_id;
    if (fate == 8) ids[i] = random_token(masking, rng, place_of(i) + kToken);
  }
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
  const uint64_t first_place = example * labels.size();
  std::vector<size_t> chosen;
  chosen.reserve(static_cast<size_t>(missing));
  constexpr size_t kDrawn = 128;  // at a time
  std::array<size_t, kDrawn> tokens;
  std::array<uint64_t, kDrawn> numbers;
  std::array<uint32_t, 4 * kDrawn> words;
  for (size_t next = 0; open > 0;) {
    size_t count = 0;
    for (; count < std::min(kDrawn, static_cast<size_t>(open)); ++next) {
      if (labels[next] == kIgnoredLabel) continue;
      numbers[count] = (first_place + next) * kDrawsOfAToken + kIsChosen;
      tokens[count++] = next;
    }
    draw_blocks(rng, std::span(numbers).first(count), words);
    for (size_t i = 0; i < count; ++i) {
      // Of those that are open, each is as likely to be among the missing.
      const auto candidates = static_cast<uint64_t>(open--);
      const uint64_t drawn = CounterRng::below_of(drawn_block(words, i), candidates);
      if (drawn < static_cast<uint64_t>(missing)) {
        --missing;
        chosen.push_back(tokens[i]);
      } else {
        labels[tokens[i]] = kIgnoredLabel;
      }
    }
  }
  replace_chosen(chosen, ids, masking, rng, first_place);
}

}  // namespace lacuna
