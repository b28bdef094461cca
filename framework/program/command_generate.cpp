// `lacuna generate`: continues a text by a trained language model.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/inference/generation.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/masked_prediction.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

// The part of the text that can be shown: without the beginning of an incomplete character.
size_t whole_characters(const std::string& text) {
  size_t begin = text.size();
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // inside of a character
    const size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    if (length > back) begin = text.size() - back;
    break;
  }
  return begin;
}

// Prints a text as it grows, behind its beginning as it was given, whose tokens may not have all of
// it; nothing before there is a first token. What a token means may depend on those before it, so
// all are decoded.
class GrowingText {
 public:
  GrowingText(const Tokenizer& tokenizer, std::string beginning, std::vector<int64_t> ids)
      : tokenizer_(tokenizer),
        beginning_(std::move(beginning)),
        ids_(std::move(ids)),
        printed_(tokenizer_.decode(ids_).size()),
        is_begun_(!beginning_.empty()) {}

  void add(int64_t id) {
    ids_.push_back(id);
    const std::string text = tokenizer_.decode(ids_);
    print_to(whole_characters(text), text);
  }
  void finish() {
    const std::string text = tokenizer_.decode(ids_);
    print_to(text.size(), text);
    print("\n");
  }

 private:
  void print_to(size_t end, const std::string& text) {
    print(std::exchange(beginning_, ""));
    // Words are put behind one another with a space between.
    const bool is_first = !std::exchange(is_begun_, is_begun_ || end > printed_);
    if (is_first && end > printed_ && text[printed_] == ' ') ++printed_;
    if (end > printed_) print(text.substr(printed_, end - printed_));
    printed_ = std::max(printed_, end);
  }
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    throw StateError(std::string("cannot write to the standard output: ") + std::strerror(errno));
  }

  const Tokenizer& tokenizer_;
  std::string beginning_;
  std::vector<int64_t> ids_;
  size_t printed_;
  bool is_begun_;
};

// What a text without a prompt continues: a line break; if the vocabulary has none, such as words,
// a full stop; else the first token of the vocabulary that is not special.
int64_t before_a_text(const Tokenizer& tokenizer) {
  for (const char* end : {"\n", "."}) {
    if (const auto id = tokenizer.find(end)) return *id;
  }
  const auto is_special = [&](int64_t id) {
    const std::string token = tokenizer.token(id);
    return (token.starts_with('[') && token.ends_with(']') && token.size() > 2) ||
           token.starts_with("##");
  };
  int64_t id = 0;
  while (id + 1 < tokenizer.vocabulary_size() && is_special(id)) ++id;
  return id;
}

struct Beginning {
  std::vector<int64_t> ids;
  std::string text;  // what of it is shown
};

Beginning beginning_of(const Tokenizer& tokenizer, const std::optional<std::string>& prompt) {
  if (prompt) {
    Beginning given{.ids = tokenizer.encode(*prompt), .text = *prompt};
    if (given.ids.empty()) throw DataError("--prompt has no token of the model's vocabulary");
    return given;
  }
  const std::string_view kind = tokenizer.kind();
  if (kind == "bytes" || kind == "bpe") {
    try {
      return {.ids = tokenizer.encode("\n"), .text = "\n"};
    } catch (const DataError&) {  // a vocabulary without that byte
    }
  }
  const int64_t id = before_a_text(tokenizer);
  return {.ids = {id}, .text = tokenizer.token(id) == "\n" ? "\n" : ""};
}

}  // namespace

int run_generate(const GenerateCommand& command) {
  const CheckpointFile file = choose_checkpoint(command.checkpoint, command.last, print_note);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  const Config config = saved_config(checkpoint, path);
  InputFormat format;
  naming_file(path, [&] { format = InputFormat::from_state(checkpoint.state.below("data")); });
  if (format.tokenizer == nullptr) {
    throw DataError("'" + path +
                    "' has no vocabulary, so it cannot generate text: it was not trained on text, "
                    "or on tokens without a vocabulary");
  }
  if (is_masked_language_model(config)) {
    throw DataError("'" + path +
                    "' is a masked language model, which also sees what follows, so it cannot "
                    "continue a text; use `lacuna predict` to fill gaps");
  }
  if (command.threads) set_num_threads(static_cast<int>(*command.threads));
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });
  if (const std::string note = slow_int8_note(checkpoint.state); !note.empty()) print_note(note);
  const Beginning beginning = beginning_of(*format.tokenizer, command.prompt);
  GrowingText text(*format.tokenizer, beginning.text, beginning.ids);
  std::vector<int64_t> never;
  if (const auto unknown = format.tokenizer->find("[UNK]")) {
    if (!command.unk) never.push_back(*unknown);
    const auto lacking = std::ranges::count(beginning.ids, *unknown);
    if (command.prompt && lacking > 0) {
      log_warning(fmt::format(
          "the vocabulary lacks {} of the {} tokens of --prompt: the model sees [UNK] instead",
          lacking, beginning.ids.size()));
    }
  }
  generate(*model, beginning.ids, format.example_shape[0],
           {.tokens = command.tokens,
            .temperature = command.temperature,
            .top_k = command.top_k,
            .seed = static_cast<uint64_t>(command.seed),
            .never = never,
            .vocabulary = format.tokenizer->vocabulary_size()},
           [&](int64_t id) { text.add(id); });
  text.finish();
  return kDone;
}

}  // namespace lacuna
