// Tokens hidden from a masked language model, which must predict them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {

/// Which tokens of an example are hidden, and by what.
struct TokenMasking {
  /// Of the tokens that may be chosen, in (0, 1): of n, fraction · n to the nearest, but at least
  /// one. Default 0.15, as BERT's.
  double fraction = 0.15;
  int64_t mask_id = 0;          ///< what most of the chosen become
  int64_t vocabulary_size = 0;  ///< ids are below it
  /// Ascending: [PAD], [CLS] and the like, the mask among them. They are never chosen, and no token
  /// becomes one of them at random.
  std::vector<int64_t> special_ids = {};
};

/// Chooses tokens of one example, each as likely as any other, and hides them: of the chosen 80 %
/// become `mask_id`, 10 % a token at random that is not special, and 10 % stay. A pure function of
/// the generator, `example` and the tokens.
///
/// `labels` has each token that may be chosen, and kIgnoredLabel elsewhere; after it, those that
/// were chosen and kIgnoredLabel elsewhere. *Requires* as many labels as ids, and options in range.
/// *Source:* Devlin et al., arXiv:1810.04805, section 3.1.
void mask_tokens(std::span<int64_t> ids, std::span<int64_t> labels, const TokenMasking& masking,
                 const CounterRng& rng, uint64_t example);

}  // namespace lacuna
