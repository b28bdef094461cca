#include "lacuna/framework/data/text_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/text_file.h"
#include "lacuna/framework/data/formats/token_sequence.h"
#include "lacuna/framework/data/token_windows.h"
#include "lacuna/framework/data/tokenizer_keys.hpp"
#include "lacuna/framework/text/character_tokenizer.h"
#include "lacuna/framework/text/utf8.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// GPT-2's.
constexpr int64_t kDefaultVocabulary = 50257;
constexpr int64_t kMostTokens16 = 65536;

struct WindowKeys {
  int64_t context = 64;
  int64_t stride = 1;
};

WindowKeys read_windows(const Config& data) {
  WindowKeys keys;
  keys.context = require_at_least(data, "context", data.get("context", keys.context), 1);
  keys.stride = require_at_least(data, "stride", data.get("stride", keys.stride), 1);
  return keys;
}

// Tokens at the end of a text that are held out: a count, or a fraction of all.
int64_t held_out_tokens(const Config& data, const char* key, int64_t size) {
  const Config node = data.get(key);
  const double wanted = data.get<double>(key, 0.0);
  if (!(wanted >= 0) || (wanted >= 1 && wanted != std::floor(wanted)) || wanted > 0x1p53) {
    node.fail("a count of tokens (0, 1, 2, …) or a fraction between 0 and 1");
  }
  if (wanted >= 1 || wanted == 0) return static_cast<int64_t>(wanted);
  // A product that is whole but for its rounding is not rounded up.
  return static_cast<int64_t>(std::ceil(wanted * static_cast<double>(size) * (1 - 1e-12)));
}

// Where the splits of a text of `size` tokens end.
struct Parts {
  int64_t train = 0, validation = 0, test = 0;
};

Parts split_tokens(const Config& data, int64_t size, bool has_own_test) {
  const int64_t validation = held_out_tokens(data, "validation", size);
  const int64_t test = has_own_test ? 0 : held_out_tokens(data, "test", size);
  if (validation >= size || test >= size - validation) {
    data.error(fmt::format("{} tokens of {} are held out; some must be left to train on",
                           validation + test, size));
  }
  return {size - validation - test, size - test, size};
}

// A sequence and what its tokens are.
struct Tokens {
  TokenSequencePtr sequence;
  int64_t vocabulary_size = 0;
  TokenizerPtr tokenizer;
};

enum class Split { Train, Evaluation };

std::shared_ptr<const Dataset> windows(const Tokens& tokens, int64_t begin, int64_t end,
                                       const WindowKeys& keys, Split split,
                                       const std::string& where) {
  if (begin == end) return nullptr;
  WindowOptions options{.context = keys.context, .stride = keys.stride};
  if (split == Split::Evaluation) options = {keys.context, keys.context, true};
  return naming(where, [&] {
    return std::make_shared<const TokenWindows>(tokens.sequence, begin, end, tokens.vocabulary_size,
                                                tokens.tokenizer, options);
  });
}

bool is_packed(const fs::path& path) { return path.extension() == ".gz"; }

// The files of a text, and the text, where it has to be read.
struct Source {
  std::string path;
  std::vector<fs::path> files;
  std::string text;
  bool is_mapped = false;
};

Source read_source(const std::string& path, const std::string& kind) {
  Source source{.path = path, .files = text_files(path), .text = {}};
  source.is_mapped = kind == "bytes" && std::ranges::none_of(source.files, is_packed);
  if (source.is_mapped) return source;
  for (const fs::path& file : source.files) {
    const std::string text = read_text_file(file);
    if (kind != "bytes") naming(file.string(), [&] { require_utf8(text); });
    source.text += text;
  }
  if (source.text.empty()) throw DataError(path + ": the text is empty");
  return source;
}

TokenSequencePtr tokens_of(const Source& source, const Tokenizer& tokenizer) {
  if (source.is_mapped) return bytes_of_files(source.files);
  return naming(source.path, [&] { return tokens_in_memory(tokenizer.encode(source.text)); });
}

// The tokenizer that was given, or one whose vocabulary is that of the text.
TokenizerPtr tokenizer_for(const TokenizerChoice& choice, const Source& source, const Config& data,
                           bool has_own_test) {
  if (choice.given != nullptr) return choice.given;
  return naming(source.path, [&]() -> TokenizerPtr {
    if (choice.kind == "characters") {
      return std::make_shared<const CharacterTokenizer>(CharacterTokenizer::of(source.text));
    }
    WordCounter counter(choice.words);
    counter.add(source.text, split_tokens(data, count_words(source.text), has_own_test).train);
    return counter.make();
  });
}

std::optional<fs::path> file_in(const fs::path& folder, const char* name) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return std::nullopt;
  return folder / name;
}

}  // namespace

DataSplits load_text(const Config& data, uint64_t /*seed*/) {
  const auto path = data.required<std::string>("path");
  const WindowKeys keys = read_windows(data);
  const TokenizerChoice choice = read_tokenizer(data, "characters", ClsKey::None);
  const Config test = data.get("test");
  const bool has_own_test = test.is_scalar() && !test.is_number();

  Source source = read_source(path, choice.kind);
  Tokens tokens{.sequence = nullptr,
                .tokenizer = tokenizer_for(choice, source, data, has_own_test)};
  tokens.vocabulary_size = tokens.tokenizer->vocabulary_size();
  if (tokens.vocabulary_size < 2) {
    throw DataError(path + ": the text has one token alone, '" + tokens.tokenizer->token(0) +
                    "', so there is nothing to predict");
  }
  tokens.sequence = tokens_of(source, *tokens.tokenizer);
  source.text = {};
  const Parts parts = split_tokens(data, tokens.sequence->size(), has_own_test);
  DataSplits splits;
  splits.is_held_out = true;
  splits.train = windows(tokens, 0, parts.train, keys, Split::Train, path + ": the training split");
  splits.validation = windows(tokens, parts.train, parts.validation, keys, Split::Evaluation,
                              path + ": the validation split");
  splits.test = windows(tokens, parts.validation, parts.test, keys, Split::Evaluation,
                        path + ": the test split");
  if (has_own_test) {
    const auto test_path = test.as<std::string>();
    const Source test_source = read_source(test_path, choice.kind);
    Tokens test_tokens = tokens;
    test_tokens.sequence = tokens_of(test_source, *tokens.tokenizer);
    splits.test =
        windows(test_tokens, 0, test_tokens.sequence->size(), keys, Split::Evaluation, test_path);
  }
  return splits;
}

DataSplits load_tokens(const Config& data, uint64_t /*seed*/) {
  const fs::path folder = data.required<std::string>("dir");
  const WindowKeys keys = read_windows(data);
  Tokens tokens;
  tokens.vocabulary_size = data.get("vocab_size", kDefaultVocabulary);
  if (tokens.vocabulary_size < 1 || tokens.vocabulary_size > kMostTokens16) {
    data.get("vocab_size").fail("1 to 65536, which 16-bit tokens have room for");
  }
  if (data.has("vocab") || data.has("merges")) {
    tokens.tokenizer = read_bpe(data);
    if (tokens.tokenizer->vocabulary_size() > tokens.vocabulary_size) {
      data.get("vocab_size")
          .error(fmt::format("the vocabulary in data.vocab has {} tokens; expected at most {}",
                             tokens.tokenizer->vocabulary_size(), tokens.vocabulary_size));
    }
  }
  const std::optional<fs::path> train = file_in(folder, "train.bin");
  if (!train) {
    throw DataError((folder / "train.bin").string() +
                    ": no such file; data.dir must hold train.bin and may hold val.bin and "
                    "test.bin");
  }
  const auto whole = [&](const fs::path& path) {
    Tokens of_file = tokens;
    of_file.sequence = tokens_of_file(path, tokens.vocabulary_size);
    return windows(of_file, 0, of_file.sequence->size(), keys, Split::Evaluation, path.string());
  };
  tokens.sequence = tokens_of_file(*train, tokens.vocabulary_size);
  const auto validation = file_in(folder, "val.bin"), test = file_in(folder, "test.bin");
  const Parts parts = split_tokens(data, tokens.sequence->size(), true);
  if (validation && parts.train < tokens.sequence->size()) {
    data.get("validation").error("'" + validation->string() + "' is there; leave this key out");
  }
  DataSplits splits;
  splits.is_held_out = true;
  splits.train =
      windows(tokens, 0, parts.train, keys, Split::Train, train->string() + ": the training split");
  splits.validation = validation
                          ? whole(*validation)
                          : windows(tokens, parts.train, parts.validation, keys, Split::Evaluation,
                                    train->string() + ": the validation split");
  if (test) splits.test = whole(*test);
  return splits;
}

}  // namespace lacuna
