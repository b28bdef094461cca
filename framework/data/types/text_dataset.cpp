#include "lacuna/framework/data/types/text_dataset.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/data/formats/token_sequence.hpp"
#include "lacuna/framework/data/types/masked_text.hpp"
#include "lacuna/framework/data/types/token_windows.hpp"
#include "lacuna/framework/data/types/tokenizer_keys.hpp"
#include "lacuna/framework/text/encode_by_parts.hpp"
#include "lacuna/framework/text/text_length.hpp"
#include "lacuna/framework/text/utf8.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultVocabulary = 50257;  // GPT-2's
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
  const bool is_whole_fraction = wanted == 1 && node.text().find('.') != std::string::npos;
  if (!(wanted >= 0) || (wanted >= 1 && wanted != std::floor(wanted)) || wanted > 0x1p53 ||
      is_whole_fraction) {
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
    data.error(fmt::format("holds out {} of {}; some must be left to train on", validation + test,
                           plural(size, "token")));
  }
  return {size - validation - test, size - test, size};
}

// A sequence and what its tokens are.
struct Tokens {
  TokenSequencePtr sequence;
  int64_t vocabulary_size = 0;
  TokenizerPtr tokenizer;
  std::optional<MaskedWindows::Options> masking = std::nullopt;
  std::optional<MaskKeys> mask = std::nullopt;  // as requested
};

// Which of them are hidden, between [CLS] and [SEP] where there are both. A window must have room
// for these two and one more token.
void hide_tokens(const MaskKeys& keys, const Config& data, const WindowKeys& window, uint64_t seed,
                 Tokens& tokens) {
  const Tokenizer* tokenizer = tokens.tokenizer.get();
  tokens.mask = keys;
  MaskedWindows::Options& options = tokens.masking.emplace();
  options.masking = masking_of(keys, tokenizer, tokens.vocabulary_size, data);
  options.seed = seed;
  const auto cls = tokenizer ? tokenizer->find("[CLS]") : std::nullopt;
  const auto sep = tokenizer ? tokenizer->find("[SEP]") : std::nullopt;
  if (cls && sep) options.cls = cls, options.sep = sep;
  require_at_least(data, "context", window.context, options.cls ? 3 : 1);
}

// A mask that is a token of the text could not be told from those that hide one. Of files that are
// larger than memory a beginning is looked at, not all.
void require_no_mask(const Tokens& tokens, int64_t begin, int64_t end, const std::string& where) {
  constexpr int64_t kMost = int64_t{1} << 26, kAtOnce = int64_t{1} << 16;
  std::vector<int64_t> ids;
  for (int64_t at = begin; at < std::min(end, begin + kMost); at += kAtOnce) {
    ids.resize(static_cast<size_t>(std::min(end - at, kAtOnce)));
    tokens.sequence->read(at, ids);
    const auto found = std::ranges::find(ids, tokens.masking->masking.mask_id);
    if (found == ids.end()) continue;
    throw DataError(fmt::format("{}: token {}: {}", where, at + (found - ids.begin()),
                                mask_in_text(*tokens.mask)));
  }
}

enum class Split { Train, Evaluation };

std::shared_ptr<const Dataset> masked_windows(const Tokens& tokens, int64_t begin, int64_t end,
                                              const WindowOptions& windows, Split split,
                                              const std::string& where) {
  require_no_mask(tokens, begin, end, where);
  MaskedWindows::Options options = *tokens.masking;
  options.windows = windows;
  if (split == Split::Evaluation) {  // each token may be hidden in one window
    options.windows.stride = windows.context - (options.cls ? 2 : 0);
    options.windows.to_the_end = true;
  }
  return naming(where, [&] {
    return std::make_shared<const MaskedWindows>(tokens.sequence, begin, end, tokens.tokenizer,
                                                 std::move(options));
  });
}

// `characters`: those of text that the tokens but the first stand for, where that is known.
std::shared_ptr<const Dataset> windows(const Tokens& tokens, int64_t begin, int64_t end,
                                       const WindowKeys& keys, Split split,
                                       const std::string& where, double characters = 0.0) {
  if (begin == end) return nullptr;
  WindowOptions options{.context = keys.context, .stride = keys.stride};
  if (tokens.masking) return masked_windows(tokens, begin, end, options, split, where);
  if (split == Split::Evaluation) {
    options = {.context = keys.context,
               .stride = keys.context,
               .to_the_end = true,
               .characters_per_token = characters / static_cast<double>(end - begin - 1)};
  }
  const auto unknown = tokens.tokenizer ? tokens.tokenizer->find("[UNK]") : std::nullopt;
  if (unknown) options.unknown_tokens = share_of(*unknown, *tokens.sequence, begin + 1, end);
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
    std::string text = kind == "bytes" ? read_text_file(file) : read_unmarked_text(file);
    if (kind != "bytes") naming(file.string(), [&] { require_utf8(text); });
    source.text.empty() ? source.text = std::move(text) : source.text += text;
  }
  if (source.text.empty()) throw DataError(path + ": the text is empty");
  return source;
}

void require_some(int64_t tokens) {
  if (tokens > 0) return;
  throw DataError("the text is only white space, so it has no tokens");
}

TokenSequencePtr tokens_of(const Source& source, const Tokenizer& tokenizer) {
  if (source.is_mapped) return bytes_of_files(source.files);
  return naming(source.path, [&] {
    auto tokens = std::make_shared<TokensInMemory>(tokenizer.vocabulary_size());
    if (tokenizer.kind() == "characters") tokens->reserve(count_characters(source.text));
    encode_by_parts(tokenizer, source.text,
                    [&](std::span<const int64_t> ids) { tokens->append(ids); });
    require_some(tokens->size());
    return tokens;
  });
}

// The tokenizer that was given, or one whose vocabulary is that of the text.
TokenizerPtr tokenizer_for(const TokenizerChoice& choice, const Source& source, const Config& data,
                           bool has_own_test, const std::optional<MaskKeys>& mask) {
  if (choice.given != nullptr) return choice.given;
  return naming(source.path, [&]() -> TokenizerPtr {
    if (choice.kind == "characters") {
      return character_vocabulary(choice, mask ? source.text + mask->token : source.text);
    }
    const int64_t words = count_words(source.text);
    require_some(words);
    WordCounter counter(choice.words);
    counter.add(source.text, split_tokens(data, words, has_own_test).train);
    return words_of(counter, data);
  });
}

// Characters that the tokens of a part stand for, without the first, which is not predicted; bytes
// for tokens of bytes. What tokens have lost, as white space between words, is read in the text.
double characters_of(const Tokens& tokens, std::string_view text, int64_t begin, int64_t end) {
  if (end - begin < 2 || tokens.tokenizer == nullptr || tokens.masking) return 0.0;
  const std::string_view kind = tokens.tokenizer->kind();
  if (kind == "bytes" || kind == "characters") return static_cast<double>(end - begin - 1);
  if (kind == "words" || kind == "wordpiece") {
    const int64_t places[] = {begin + 1, end};
    const std::vector<double> before = characters_before(*tokens.tokenizer, text, places);
    return before[1] - before[0];
  }
  constexpr int64_t kAtOnce = 1 << 16;
  int64_t characters = 0;
  for (int64_t at = begin + 1; at < end; at += kAtOnce) {
    std::vector<int64_t> ids(static_cast<size_t>(std::min(end - at, kAtOnce)));
    tokens.sequence->read(at, ids);
    std::erase_if(ids, [&](int64_t id) { return id >= tokens.tokenizer->vocabulary_size(); });
    characters += count_characters(tokens.tokenizer->decode(ids));
  }
  return static_cast<double>(characters);
}

std::shared_ptr<const Dataset> whole_file(const Tokens& tokens, const WindowKeys& keys,
                                          const fs::path& path) {
  Tokens of_file = tokens;
  of_file.sequence = tokens_of_file(path, tokens.vocabulary_size);
  const int64_t end = of_file.sequence->size();
  return windows(of_file, 0, end, keys, Split::Evaluation, path.string(),
                 characters_of(of_file, {}, 0, end));
}

std::shared_ptr<const Dataset> whole_text(Tokens tokens, const WindowKeys& keys,
                                          const std::string& path, const std::string& kind) {
  const Source source = read_source(path, kind);
  tokens.sequence = tokens_of(source, *tokens.tokenizer);
  const int64_t end = tokens.sequence->size();
  return windows(tokens, 0, end, keys, Split::Evaluation, path,
                 characters_of(tokens, source.text, 0, end));
}

std::optional<fs::path> file_in(const fs::path& folder, const char* name) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return std::nullopt;
  return folder / name;
}

}  // namespace

DataSplits load_text(const Config& data, uint64_t seed) {
  const auto path = data.required<std::string>("path");
  const WindowKeys keys = read_windows(data);
  const std::optional<MaskKeys> mask =
      read_mask(data, data.get<std::string>("tokenizer", "characters"), MaskOf::Tokenizer);
  const TokenizerChoice choice =
      read_tokenizer(data, "characters", ClsKey::None, mask ? mask->token : std::string());
  const Config test = data.get("test");
  const bool has_own_test = test.is_scalar() && !test.is_number();

  Source source = read_source(path, choice.kind);
  Tokens tokens{.sequence = nullptr,
                .tokenizer = tokenizer_for(choice, source, data, has_own_test, mask)};
  tokens.vocabulary_size = tokens.tokenizer->vocabulary_size();
  if (tokens.vocabulary_size < 2) {
    throw DataError(path + ": the text has only one token, '" + tokens.tokenizer->token(0) +
                    "', so there is nothing to predict");
  }
  if (mask) hide_tokens(*mask, data, keys, seed, tokens);
  tokens.sequence = tokens_of(source, *tokens.tokenizer);
  const Parts parts = split_tokens(data, tokens.sequence->size(), has_own_test);
  DataSplits splits;
  splits.is_held_out = true;
  splits.train = windows(tokens, 0, parts.train, keys, Split::Train, path + ": the training split");
  const auto held_out = [&](int64_t begin, int64_t end, const char* split) {
    return windows(tokens, begin, end, keys, Split::Evaluation, path + ": the " + split + " split",
                   characters_of(tokens, source.text, begin, end));
  };
  splits.validation = held_out(parts.train, parts.validation, "validation");
  splits.test = held_out(parts.validation, parts.test, "test");
  if (has_own_test) splits.test = whole_text(tokens, keys, test.as<std::string>(), choice.kind);
  return splits;
}

namespace {

DataSplits load_text_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  const WindowKeys keys = read_windows(data);
  const Config test = data.get("test");
  DataSplits splits;
  splits.is_held_out = true;
  if (!test.is_scalar() || test.is_number() || known.tokenizer == nullptr) return splits;
  const std::optional<MaskKeys> mask =
      read_mask(data, data.get<std::string>("tokenizer", "characters"), MaskOf::Tokenizer);
  Tokens tokens{.sequence = nullptr,
                .vocabulary_size = known.tokenizer->vocabulary_size(),
                .tokenizer = known.tokenizer};
  if (mask) hide_tokens(*mask, data, keys, seed, tokens);
  splits.test =
      whole_text(tokens, keys, test.as<std::string>(), std::string(known.tokenizer->kind()));
  return splits;
}

// Of files of tokens, whose vocabulary may be unknown.
void mask_tokens(const Config& data, const WindowKeys& keys, uint64_t seed, Tokens& tokens) {
  const bool has_vocabulary = tokens.tokenizer != nullptr;
  const auto mask = read_mask(data, has_vocabulary ? "bpe" : "",
                              has_vocabulary ? MaskOf::Tokenizer : MaskOf::Ids);
  if (mask) hide_tokens(*mask, data, keys, seed, tokens);
}

DataSplits load_tokens(const Config& data, uint64_t seed) {
  const fs::path folder = data.required<std::string>("dir");
  const WindowKeys keys = read_windows(data);
  Tokens tokens;
  tokens.vocabulary_size = data.get("vocab_size", kDefaultVocabulary);
  if (tokens.vocabulary_size < 1 || tokens.vocabulary_size > kMostTokens16) {
    data.get("vocab_size").fail("1 to 65536, the range of 16-bit tokens");
  }
  if (data.has("vocab") || data.has("merges")) {
    tokens.tokenizer = read_bpe(data);
    if (tokens.tokenizer->vocabulary_size() > tokens.vocabulary_size) {
      data.get("vocab_size")
          .error(fmt::format("the vocabulary in data.vocab has {} tokens; expected at most {}",
                             tokens.tokenizer->vocabulary_size(), tokens.vocabulary_size));
    }
  }
  mask_tokens(data, keys, seed, tokens);
  const std::optional<fs::path> train = file_in(folder, "train.bin");
  if (!train) {
    throw DataError((folder / "train.bin").string() +
                    ": no such file; data.dir must hold train.bin and may hold val.bin and "
                    "test.bin");
  }
  tokens.sequence = tokens_of_file(*train, tokens.vocabulary_size);
  const auto validation = file_in(folder, "val.bin"), test = file_in(folder, "test.bin");
  const Parts parts = split_tokens(data, tokens.sequence->size(), true);
  if (validation && parts.train < tokens.sequence->size()) {
    data.get("validation").error("'" + validation->string() + "' exists; leave this key out");
  }
  DataSplits splits;
  splits.is_held_out = true;
  splits.train =
      windows(tokens, 0, parts.train, keys, Split::Train, train->string() + ": the training split");
  splits.validation = validation
                          ? whole_file(tokens, keys, *validation)
                          : windows(tokens, parts.train, parts.validation, keys, Split::Evaluation,
                                    train->string() + ": the validation split",
                                    characters_of(tokens, {}, parts.train, parts.validation));
  if (test) splits.test = whole_file(tokens, keys, *test);
  return splits;
}

DataSplits load_tokens_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  const fs::path folder = data.required<std::string>("dir");
  const WindowKeys keys = read_windows(data);
  Tokens tokens{.sequence = nullptr,
                .vocabulary_size = data.get("vocab_size", kDefaultVocabulary),
                .tokenizer = known.tokenizer};
  mask_tokens(data, keys, seed, tokens);
  DataSplits splits;
  splits.is_held_out = true;
  if (const auto path = file_in(folder, "val.bin")) {
    splits.validation = whole_file(tokens, keys, *path);
  }
  if (const auto path = file_in(folder, "test.bin")) splits.test = whole_file(tokens, keys, *path);
  return splits;
}

}  // namespace

DatasetType text_dataset() {
  return {.load = load_text,
          .paths = {"path", "test", "vocab", "merges"},
          .load_held_out = load_text_held_out,
          .split_keys = {"data.validation", "data.test"},  // at the end, in this order
          .late_keys = std::vector<std::string>{"test"},
          .new_run_keys = {{"unk", "true"}}};
}

DatasetType tokens_dataset() {
  return {.load = load_tokens,
          .paths = {"dir", "vocab", "merges"},
          .has_training_files =
              [](const Config& data) {
                return file_in(data.required<std::string>("dir"), "train.bin").has_value();
              },
          .load_held_out = load_tokens_held_out,
          .split_keys = {"data.validation"},
          .late_keys = std::vector<std::string>{"mask_fraction", "mask_token", "mask_id"}};
}

}  // namespace lacuna
