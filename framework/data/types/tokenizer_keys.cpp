#include "lacuna/framework/data/types/tokenizer_keys.hpp"

#include <algorithm>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"

namespace lacuna {
namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names = {"bpe", "bytes", "characters", "words",
                                                 "wordpiece"};
  return names;
}

TokenizerPtr read_wordpiece(const Config& data) {
  const auto path = data.required<std::string>("vocab");
  const bool lower_case = data.get("lower_case", true);
  const std::string text = read_unmarked_text(path);
  return naming(path, [&] {
    return std::make_shared<const WordPieceTokenizer>(
        WordPieceTokenizer::from_file(text, lower_case));
  });
}

WordOptions read_words(const Config& data, ClsKey cls, const std::string& mask) {
  WordOptions words{.mask = mask};
  words.lower_case = data.get("lower_case", words.lower_case);
  words.min_count = require_at_least(data, "min_count", data.get("min_count", words.min_count), 1);
  words.max_size = require_at_least(data, "max_size", data.get("max_size", words.max_size), 0);
  if (cls == ClsKey::Read) words.cls = data.get("cls", words.cls);
  const int64_t specials = (words.cls ? 3 : 2) + (mask.empty() ? 0 : 1);
  if (words.max_size > 0 && words.max_size <= specials) {
    data.get("max_size").fail("0 (no bound), or room for [PAD], [UNK] and at least one word");
  }
  return words;
}

// "vocabulary: …" and "merges, line 7: …" with the file's name in their place.
std::string with_file(std::string_view message, const std::string& vocab,
                      const std::string& merges) {
  constexpr std::string_view kVocabulary = "vocabulary: ", kMerges = "merges, line ";
  if (message.starts_with(kVocabulary)) {
    return vocab + ": " + std::string(message.substr(kVocabulary.size()));
  }
  if (message.starts_with(kMerges)) {
    return merges + ":" + std::string(message.substr(kMerges.size()));
  }
  return vocab + ", " + merges + ": " + std::string(message);
}

}  // namespace

TokenizerPtr read_bpe(const Config& data) {
  const auto vocab = data.required<std::string>("vocab");
  const auto merges = data.required<std::string>("merges");
  const std::string vocab_text = read_unmarked_text(vocab),
                    merges_text = read_unmarked_text(merges);
  if (merges_text.find(' ') == std::string::npos) {
    throw DataError(merges +
                    ": there are no merges in the file; expected lines of two tokens each, as "
                    "merges.txt of GPT-2 has (single bytes are tokens of the tokenizer `bytes`)");
  }
  try {
    return std::make_shared<const BpeTokenizer>(BpeTokenizer::from_files(vocab_text, merges_text));
  } catch (const DataError& error) {
    throw DataError(with_file(error.what(), vocab, merges));
  }
}

TokenizerPtr character_vocabulary(const TokenizerChoice& choice, std::string_view text) {
  using enum CharacterTokenizer::Unknown;
  return std::make_shared<const CharacterTokenizer>(
      CharacterTokenizer::of(text, choice.has_unknown ? Token : Refused));
}

TokenizerChoice read_tokenizer(const Config& data, std::string_view fallback, ClsKey cls,
                               const std::string& mask) {
  TokenizerChoice choice{.kind = data.get<std::string>("tokenizer", std::string(fallback)),
                         .given = nullptr};
  if (choice.kind == "characters") {
    choice.has_unknown = data.optional<bool>("unk").value_or(false);
  } else if (data.has("unk")) {
    if (!data.required<bool>("unk")) {
      data.get("unk").error("belongs to the tokenizer `characters`; leave it out");
    }
    Config(data).erase("unk");  // which new runs state, whatever their tokenizer
  }
  if (choice.kind == "bytes") {
    choice.given = std::make_shared<const ByteTokenizer>();
  } else if (choice.kind == "bpe") {
    choice.given = read_bpe(data);
  } else if (choice.kind == "wordpiece") {
    choice.given = read_wordpiece(data);
  } else if (choice.kind == "words") {
    choice.words = read_words(data, cls, mask);
  } else if (choice.kind != "characters") {
    data.get("tokenizer")
        .error("unknown tokenizer '" + choice.kind + "'; " + suggest_name(choice.kind, kinds()));
  }
  return choice;
}

namespace {

int64_t read_mask_id(const Config& data) {
  if (data.has("mask_token")) {
    data.get("mask_token")
        .error("the tokens have no vocabulary to find it in; give vocab and merges, or mask_id");
  }
  if (!data.has("mask_id")) {
    data.get("mask_fraction")
        .error("give mask_id, which replaces hidden tokens, or vocab, merges and mask_token");
  }
  return data.get<int64_t>("mask_id", 0);
}

}  // namespace

std::optional<MaskKeys> read_mask(const Config& data, std::string_view kind, MaskOf mask_of) {
  const auto fraction = data.optional<double>("mask_fraction");
  if (!fraction) {
    for (const char* key : {"mask_token", "mask_id"}) {
      if (!data.has(key)) continue;
      data.get(key).error("there is no mask_fraction, so nothing is masked");
    }
    return std::nullopt;
  }
  if (!(*fraction > 0.0 && *fraction < 1.0)) {
    data.get("mask_fraction").fail("a fraction of the tokens, in (0, 1)");
  }
  if (mask_of == MaskOf::Ids) return MaskKeys{*fraction, {}, read_mask_id(data)};
  if (data.has("mask_id")) {
    data.get("mask_id").error("the tokens have a vocabulary; give mask_token instead");
  }
  if (kind != "wordpiece" && kind != "words" && !data.has("mask_token")) {
    data.get("mask_fraction")
        .error("the tokenizer '" + std::string(kind) +
               "' has no mask to replace hidden tokens; give mask_token, or choose wordpiece or "
               "words");
  }
  return MaskKeys{*fraction, data.get<std::string>("mask_token", "[MASK]")};
}

TokenMasking masking_of(const MaskKeys& keys, const Tokenizer* tokenizer, int64_t vocabulary_size,
                        const Config& data) {
  const std::optional<int64_t> mask = keys.id ? keys.id : tokenizer->find(keys.token);
  if (!mask) {
    data.get(data.has("mask_token") ? "mask_token" : "mask_fraction")
        .error("the vocabulary has no token '" + keys.token +
               "', which replaces hidden tokens; set mask_token to one that it has");
  }
  if (*mask < 0 || *mask >= vocabulary_size) {
    data.get("mask_id").fail("an id below vocab_size, " + std::to_string(vocabulary_size));
  }
  TokenMasking masking{.fraction = keys.fraction,
                       .mask_id = *mask,
                       .vocabulary_size = vocabulary_size,
                       .special_ids = {*mask}};
  std::vector<int64_t>& specials = masking.special_ids;
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (tokenizer == nullptr) break;
    if (const auto id = tokenizer->find(name)) specials.push_back(*id);
  }
  std::ranges::sort(specials);
  specials.erase(std::unique(specials.begin(), specials.end()), specials.end());
  return masking;
}

TokenizerPtr words_of(const WordCounter& counter, const Config& data) {
  const Config key = data.get("min_count");
  try {
    return counter.make();
  } catch (const DataError& error) {
    if (!key.is_number() || key.as<int64_t>() <= 1) throw;
    key.error(error.what());
  }
}

std::string mask_in_text(const MaskKeys& keys) {
  const bool is_id = keys.id.has_value();
  return (is_id ? "the token " + std::to_string(*keys.id) : "the token '" + keys.token + "'") +
         " is in the text, but it is the mask that replaces hidden tokens; give a data." +
         (is_id ? "mask_id" : "mask_token") + " that the text does not have";
}

}  // namespace lacuna
