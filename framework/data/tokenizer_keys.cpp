#include "lacuna/framework/data/tokenizer_keys.hpp"

#include <array>

#include "lacuna/framework/core/names.h"
#include "lacuna/framework/data/formats/text_file.h"
#include "lacuna/framework/text/bpe_tokenizer.h"
#include "lacuna/framework/text/byte_tokenizer.h"
#include "lacuna/framework/text/wordpiece_tokenizer.h"

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
  const std::string text = read_text_file(path);
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

}  // namespace

TokenizerPtr read_bpe(const Config& data) {
  const auto vocab = data.required<std::string>("vocab");
  const auto merges = data.required<std::string>("merges");
  const std::string vocab_text = read_text_file(vocab), merges_text = read_text_file(merges);
  return naming(vocab + ", " + merges, [&] {
    return std::make_shared<const BpeTokenizer>(BpeTokenizer::from_files(vocab_text, merges_text));
  });
}

TokenizerChoice read_tokenizer(const Config& data, std::string_view fallback, ClsKey cls,
                               const std::string& mask) {
  TokenizerChoice choice{.kind = data.get<std::string>("tokenizer", std::string(fallback)),
                         .given = nullptr};
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

}  // namespace lacuna
