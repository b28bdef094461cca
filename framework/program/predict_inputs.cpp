#include "lacuna/framework/program/predict_inputs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/added_channel.hpp"
#include "lacuna/framework/data/formats/idx.hpp"
#include "lacuna/framework/data/formats/image.hpp"
#include "lacuna/framework/data/formats/sentence_file.hpp"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/data/types/csv.h"
#include "lacuna/framework/data/types/image_folder.hpp"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/data/types/npz_dataset.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

// As messages call it.
std::string name_of_input(const std::string& path) { return path == "-" ? "standard input" : path; }

// As for data.dir: a missing file is read from its .gz.
std::string packed_or_not(const std::string& path) {
  std::error_code unknown;
  const bool is_packed =
      !std::filesystem::exists(path, unknown) && std::filesystem::exists(path + ".gz", unknown);
  return is_packed ? path + ".gz" : path;
}

Examples read_examples(const std::string& given, const Config& data, const InputFormat& format,
                       const KnownData& known) {
  const std::string path = packed_or_not(given);
  const DatasetType& type = dataset_type(data);
  if (type.read_inputs) {
    auto own = type.read_inputs(path, data, known);
    if (own) return *std::move(own);
  }
  if (is_table_name(path)) {
    return read_csv_inputs(path, {.header = CsvHeader::Guessed, .task = Task::None});
  }
  if (is_numpy_name(path)) return read_numpy_inputs(path, data, format.example_shape);
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown) || is_image_file(path)) {
    return read_image_inputs(path, format.example_shape, Orientation::AsStored);
  }
  try {
    IdxImages images = read_idx_images(path);
    return {.example_shape = Shape{images.rows, images.columns},
            .inputs = std::move(images.pixels)};
  } catch (const DataError& error) {
    const std::string ending = to_lower(std::filesystem::path(path).extension().string());
    const bool is_named_image = ending == ".png" || ending == ".jpg" || ending == ".jpeg";
    if (is_named_image && std::filesystem::exists(path, unknown)) {
      throw DataError(path + ": its content is neither a PNG nor a JPEG image");
    }
    throw DataError(std::string(error.what()) +
                    (ending == ".bin"
                         ? " (CIFAR's .bin files need a model that was trained on them; this one "
                           "was trained on " +
                               data.peek("type").text() + ")"
                         : " (nor is it an image; a table's name must end in .csv or .csv.gz, "
                           "and an array's in .npy or .npz)"));
  }
}

// Where sentences and labels stand, as in training.
SentenceColumns sentence_columns(const Config& data, const InputFormat& format,
                                 const KnownData& known) {
  SentenceColumns columns = read_sentence_columns(data, known.num_classes);
  columns.label_may_lack = true;
  columns.class_names = format.class_names;
  return columns;
}

// Sentences that are cut off, and words that look like labels, are accepted and reported.
class SentenceWarnings {
 public:
  SentenceWarnings(std::string path, int64_t max_length)
      : path_(std::move(path)), max_length_(max_length) {}

  void look_at(std::string_view line, int64_t tokens) {
    ++lines_;
    cut_ += tokens > max_length_ ? 1 : 0;
    const size_t gap = line.find_first_not_of("0123456789");
    numbered_ +=
        gap != 0 && gap != std::string_view::npos && (line[gap] == ' ' || line[gap] == '\t') ? 1
                                                                                             : 0;
  }
  void tell() const {
    if (cut_ > 0) {
      log_warning(fmt::format(
          "{}: {} of {} {} more than {} tokens, and the rest is cut off (data.max_length)", path_,
          cut_, plural(lines_, "example"), cut_ == 1 ? "has" : "have", max_length_));
    }
    if (lines_ > 1 && numbered_ == lines_) {
      log_warning(path_ +
                  ": every line begins with a number, which is read as a word of the sentence; "
                  "give sentences without labels");
    }
  }

 private:
  std::string path_;
  int64_t max_length_;
  int64_t lines_ = 0, cut_ = 0, numbered_ = 0;
};

// "-" is the standard input.
std::string read_input_text(const std::string& path) {
  std::string text = path == "-" ? read_standard_input() : read_text_file(path);
  text.erase(0, byte_order_mark(text, name_of_input(path)));
  return text;
}

// Columns of a table, found by their names, or lines with labels of fastText's; answers next to
// them where the labels are there.
PredictInputs read_sentence_file(const std::string& path, std::string text,
                                 const SentenceColumns& columns, const InputFormat& format,
                                 const KnownData& known) {
  const auto file =
      std::make_shared<const SentenceFile>(name_of_input(path), std::move(text), columns);
  const int64_t longest = format.example_shape[0];
  if (file->has_labels()) file->require_classes(format.class_names);
  PredictInputs inputs{
      .dataset = sentences_of(file, format.tokenizer, longest, known.num_classes, false),
      .has_answers = file->has_labels()};
  SentenceWarnings warnings(name_of_input(path), longest);
  const Tokenizer& tokenizer = *format.tokenizer;
  for (int64_t i = 0; i < file->size(); ++i) {
    const std::vector<std::string> texts = file->texts(i);
    const size_t tokens = texts.size() > 1
                              ? encode_pair(tokenizer, texts[0], texts[1], longest + 1).ids.size()
                              : encode_example(tokenizer, texts[0], longest + 1).size();
    warnings.look_at("", static_cast<int64_t>(tokens));
  }
  warnings.tell();
  return inputs;
}

// A sentence on each line.
std::shared_ptr<const Dataset> read_sentences(const std::string& path, std::string text,
                                              const InputFormat& format) {
  const int64_t max_length = format.example_shape[0];
  auto sentences = std::make_shared<LabelledText>(format.tokenizer, max_length, 1);
  std::istringstream lines(std::move(text));
  SentenceWarnings warnings(name_of_input(path), max_length);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    try {
      const std::vector<int64_t> ids = encode_example(*format.tokenizer, line, max_length);
      if (ids.empty()) throw DataError("there is no sentence");
      const bool may_be_cut = static_cast<int64_t>(ids.size()) == max_length;
      warnings.look_at(
          line, static_cast<int64_t>(
                    may_be_cut ? encode_example(*format.tokenizer, line, max_length + 1).size()
                               : ids.size()));
      sentences->add(ids, 0);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", name_of_input(path), number, error.what()));
    }
  }
  if (sentences->size() == 0) throw DataError(name_of_input(path) + ": the file is empty");
  warnings.tell();
  return sentences;
}

// Where the model was trained on a table, what names its columns is one, whatever it is called.
PredictInputs read_text_inputs(const std::string& path, const Config& data,
                               const InputFormat& format, const KnownData& known) {
  const SentenceColumns columns = sentence_columns(data, format, known);
  std::string text = read_input_text(path);
  if (columns.texts.empty()) {
    const bool has_labels = text.starts_with("__label__") && !format.class_names.empty();
    if (has_labels) return read_sentence_file(path, std::move(text), columns, format, known);
    return {.dataset = read_sentences(path, std::move(text), format)};
  }
  const bool has_pairs = columns.texts.size() > 1;
  if (has_pairs || is_table_name(path) || path.ends_with(".tsv") || path.ends_with(".tsv.gz") ||
      is_sentence_table(text, columns)) {
    return read_sentence_file(path, std::move(text), columns, format, known);
  }
  if (columns.has_header) {
    log_warning(fmt::format(
        "{}: the first line does not name the column '{}', so each line is read as a sentence",
        name_of_input(path), columns.texts.front()));
  }
  return {.dataset = read_sentences(path, std::move(text), format)};
}

}  // namespace

PredictInputs read_sparse_inputs(const std::string& path, const Config& data,
                                 const KnownData& known) {
  Config own = data.clone();
  own.erase("validation");
  own.set("test", packed_or_not(path));
  const auto& load = dataset_type(own).load_held_out;
  const DataSplits splits = load ? load(own, 0, known) : DataSplits();
  if (splits.test == nullptr) {
    throw DataError("'" + name_of_input(path) + "' cannot be read as data of the type '" +
                    own.peek("type").text() + "', which the model was trained on");
  }
  return {.dataset = splits.test};
}

PredictInputs read_predict_inputs(const std::string& path, const Config& data,
                                  const InputFormat& format, const KnownData& known) {
  if (format.tokenizer != nullptr) return read_text_inputs(path, data, format, known);
  std::vector<std::filesystem::path> files;
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) files = image_files_in(path);
  Examples examples = read_examples(path, data, format, known);
  examples.example_shape = with_channel_of(format.example_shape, examples.example_shape);
  if (examples.example_shape != format.example_shape) {
    throw DataError("'" + name_of_input(path) + "' has inputs of shape " +
                    examples.example_shape.to_string() + ", and the model was trained on " +
                    format.example_shape.to_string() +
                    "; give only the inputs, without a label or target");
  }
  const bool has_answers = !examples.labels.empty() || !examples.targets.empty();
  return {.dataset = ArrayDataset(std::move(examples)).normalized(format.normalization),
          .has_answers = has_answers,
          .files = {files.begin(), files.end()}};
}

}  // namespace lacuna
