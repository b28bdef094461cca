// Sentences as models that read them whole are given them: cut off, between special tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// A sentence as a model is given it: its tokens between the tokenizer's [CLS] and [SEP], where it
/// has those, cut off so that there are at most `max_length`, [CLS] and [SEP] among them.
/// Characters and bytes have neither. *Errors:* as Tokenizer::encode; StateError when `max_length`
/// leaves no room for a token of the sentence.
std::vector<int64_t> encode_example(const Tokenizer& tokenizer, std::string_view sentence,
                                    int64_t max_length);

/// Two sentences as a model is given them, the tokens of the second of another type.
struct EncodedPair {
  std::vector<int64_t> ids;
  int64_t first = 0;  ///< tokens of type 0; those after them are of type 1
};

/// [CLS] first [SEP] second [SEP] (without [CLS] where the tokenizer has none), cut off so that
/// there are at most `max_length`, a token at a time from the sentence that is the longer one, of
/// two that are as long from the second. *Source:* Devlin et al., arXiv:1810.04805. *Errors:* as
/// encode_example; StateError without a [SEP].
EncodedPair encode_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                        int64_t max_length);

}  // namespace lacuna
