// Tokens hidden from a masked language model, which must predict them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {

/// Which tokens of an example are hidden, and what replaces them.
struct TokenMasking {
  /// Fraction of the eligible tokens, in (0, 1): of n tokens, fraction · n, rounded to the nearest
  /// integer, but at least one. Default 0.15, as in BERT.
  double fraction = 0.15;
  int64_t mask_id = 0;          ///< replaces most of the chosen tokens
  int64_t vocabulary_size = 0;  ///< ids are below it
  /// Ascending ids of [PAD], [CLS] and other special tokens, including the mask. They are never
  /// chosen, and never replace a token at random.
  std::vector<int64_t> special_ids = {};
};

/// Chooses tokens of one example, each as likely as any other, and hides them: of the chosen 80 %
/// become `mask_id`, 10 % a token at random that is not special, and 10 % stay. A pure function of
/// the generator, `example` and the tokens.
///
/// On entry, `labels` has each eligible token, and kIgnoredLabel elsewhere; on return, the chosen
/// tokens, and kIgnoredLabel elsewhere. *Requires* as many labels as ids, and options in range.
/// *Source:* Devlin et al., arXiv:1810.04805, section 3.1.
void mask_tokens(std::span<int64_t> ids, std::span<int64_t> labels, const TokenMasking& masking,
                 const CounterRng& rng, uint64_t example);

}  // namespace lacuna
