#include "lacuna/framework/program/output/masked_prediction.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/train/run_model.hpp"

namespace lacuna {
namespace {

// Texts between masks are encoded each for itself.
MaskedLine encode_line(std::string_view line, const Tokenizer& tokenizer, const std::string& mask,
                       int64_t longest) {
  const std::optional<int64_t> cls = tokenizer.find("[CLS]"), sep = tokenizer.find("[SEP]"),
                               mask_id = tokenizer.find(mask);
  if (!mask_id) throw DataError("the vocabulary has no token '" + mask + "'");
  MaskedLine result;
  if (cls && sep) result.ids.push_back(*cls);
  while (true) {
    const size_t end = std::min(line.find(mask), line.size());
    const std::vector<int64_t> ids = tokenizer.encode(line.substr(0, end));
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    if (end == line.size()) break;
    result.masks.push_back(static_cast<int64_t>(result.ids.size()));
    result.ids.push_back(*mask_id);
    line.remove_prefix(end + mask.size());
  }
  if (cls && sep) result.ids.push_back(*sep);
  if (result.masks.empty()) throw DataError("there is no " + mask + " to fill");
  const auto tokens = static_cast<int64_t>(result.ids.size());
  if (tokens > longest) {
    throw DataError(
        fmt::format("the line has {} tokens, and the model was trained on {}", tokens, longest));
  }
  return result;
}

}  // namespace

bool is_masked_language_model(const Config& config) {
  return config.get("data").has("mask_fraction");
}

std::vector<MaskedLine> read_masked_lines(const std::vector<std::string>& paths, const Config& data,
                                          const InputFormat& format) {
  if (format.tokenizer == nullptr) {
    throw DataError(
        "the model was trained on tokens without a vocabulary, so it cannot read lines of text");
  }
  const auto mask = data.get<std::string>("mask_token", "[MASK]");
  std::vector<MaskedLine> all;
  for (const std::string& path : paths) {
    std::istringstream lines(read_unmarked_text(path));
    int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.ends_with('\r')) line.pop_back();
      try {
        all.push_back(encode_line(line, *format.tokenizer, mask, format.example_shape[0]));
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
      }
    }
    if (number == 0) throw DataError(path + ": the file is empty");
  }
  return all;
}

int64_t fill_masks(Module& model, const std::vector<MaskedLine>& lines, const InputFormat& format,
                   CsvWriter& writer) {
  writer.token_header();
  const NoGrad no_grad;
  int64_t count = 0, line = 0;
  for (const MaskedLine& text : lines) {
    Batch batch;
    batch.size = 1;
    const Shape shape{1, static_cast<int64_t>(text.ids.size())};
    batch.named.emplace("input_ids", IndexTensor(shape, text.ids));
    const Tensor logits = reordered(run_model(model, batch).value(), Order::RowMajor);
    // A model may have rows without a token, for example if vocab_size was rounded up.
    const int64_t width = logits.shape().features(),
                  classes = std::min(width, format.tokenizer->vocabulary_size());
    ++line;
    int64_t number = 0;
    for (const int64_t place : text.masks) {
      const float* row = logits.data() + place * width;
      const int64_t best = std::max_element(row, row + classes) - row;
      writer.token_row(line, ++number, format.tokenizer->token(best),
                       probability_of(row, classes, best, best));
      ++count;
    }
  }
  return count;
}

}  // namespace lacuna
