// `lacuna predict`: outputs of a trained model for inputs without targets, as CSV.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/cifar.h"
#include "lacuna/framework/data/csv.h"
#include "lacuna/framework/data/formats/idx.h"
#include "lacuna/framework/data/formats/image.h"
#include "lacuna/framework/data/formats/text_file.h"
#include "lacuna/framework/data/image_folder.h"
#include "lacuna/framework/data/labelled_text.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/csv_writer.hpp"
#include "lacuna/framework/program/masked_prediction.hpp"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/run_folder.h"
#include "lacuna/framework/train/run_model.h"

namespace lacuna {
namespace {

constexpr int64_t kPredictBatch = 1000;

// One example: the image, brought to the size of those that the model was trained on.
Examples read_one_image(const std::string& path, const Shape& example) {
  const bool has_channels = example.rank() == 3 && (example[0] == 1 || example[0] == 3);
  if (!has_channels && example.rank() != 2) {
    throw DataError("'" + path + "' is an image, and the model was trained on inputs of shape " +
                    example.to_string());
  }
  const std::filesystem::path file = path;
  Examples examples = read_images(
      {&file, 1},
      {.channels = has_channels ? example[0] : 1, .height = example[-2], .width = example[-1]});
  examples.example_shape = example;
  return examples;
}

// A table is read as the training data's was, but for the label, which is not there.
Examples read_examples(const std::string& path, const Config& data, const Shape& example) {
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) {
    CsvOptions options{.task = Task::None};
    if (!data.get<bool>("header", true)) options.header = CsvHeader::Absent;
    options.delimiter = data.get<std::string>("delimiter", ",").front();
    return read_csv(path, options).examples;
  }
  const std::string type = data.get("type").text();
  if (path.ends_with(".bin") && type.starts_with("cifar")) {
    return read_cifar_images(path, type == "cifar10" ? CifarKind::Cifar10 : CifarKind::Cifar100);
  }
  if (is_image_file(path)) return read_one_image(path, example);
  try {
    IdxImages images = read_idx_images(path);
    return {.example_shape = Shape{images.rows, images.columns},
            .inputs = std::move(images.pixels)};
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + " (a table's name must end in .csv or .csv.gz)");
  }
}

// A sentence on each line.
std::shared_ptr<const Dataset> read_sentences(const std::string& path, const InputFormat& format) {
  const int64_t max_length = format.example_shape[0];
  auto sentences = std::make_shared<LabelledText>(format.tokenizer, max_length, 1);
  std::istringstream lines(read_text_file(path));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    try {
      const std::vector<int64_t> ids = encode_example(*format.tokenizer, line, max_length);
      if (ids.empty()) throw DataError("there is no sentence");
      sentences->add(ids, 0);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (sentences->size() == 0) throw DataError(path + ": the file is empty");
  return sentences;
}

std::shared_ptr<const Dataset> read_inputs(const std::string& path, const Config& data,
                                           const InputFormat& format) {
  if (format.tokenizer != nullptr) return read_sentences(path, format);
  Examples examples = read_examples(path, data, format.example_shape);
  if (examples.example_shape != format.example_shape) {
    throw DataError("'" + path + "' has inputs of shape " + examples.example_shape.to_string() +
                    ", and the model was trained on " + format.example_shape.to_string() +
                    "; predict takes the inputs alone, without a label or target");
  }
  return ArrayDataset(std::move(examples)).normalized(format.normalization);
}

// What the outputs of a model are, by the loss it was trained with.
enum class Outputs { Classes, Decisions, Values };

Outputs outputs_of(const Config& config) {
  const Config loss = config.get("loss");
  const std::string name = (loss.is_map() ? loss.get("type") : loss).text();
  if (name == "cross_entropy" || name == "distillation") return Outputs::Classes;
  return name == "binary_cross_entropy" ? Outputs::Decisions : Outputs::Values;
}

void write_header(CsvWriter& writer, Outputs kind, int64_t columns) {
  switch (kind) {
    case Outputs::Classes:
      return writer.class_header(columns);
    case Outputs::Decisions:
      return writer.decision_header(columns);
    case Outputs::Values:
      return writer.value_header(columns);
  }
}

void write_rows(CsvWriter& writer, const Tensor& outputs, Outputs kind) {
  const Tensor rows = reordered(outputs, Order::RowMajor);
  const int64_t columns = rows.shape().features();
  const std::vector<int64_t> best =
      kind == Outputs::Classes ? argmax_rows(rows) : std::vector<int64_t>();
  for (int64_t i = 0; i < rows.shape().batch(); ++i) {
    const float* row = rows.data() + i * columns;
    switch (kind) {
      case Outputs::Classes:
        writer.class_row(row, columns, best[static_cast<size_t>(i)]);
        break;
      case Outputs::Decisions:
        writer.decision_row(row, columns);
        break;
      case Outputs::Values:
        writer.value_row(row, columns);
        break;
    }
  }
}

}  // namespace

int run_predict(const PredictCommand& command) {
  const CheckpointFile file = find_checkpoint(command.checkpoint);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  const Config config = saved_config(checkpoint, path);
  InputFormat format;
  naming_file(path, [&] { format = InputFormat::from_state(checkpoint.state.below("data")); });
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });
  const Shape output = model->output_shape(format.example_shape);
  if (is_masked_language_model(config)) {
    const auto lines = read_masked_lines(command.inputs, config.get("data"), format);
    CsvWriter writer(command.out);
    const int64_t masks = fill_masks(*model, lines, format, writer);
    writer.close();
    std::printf("%lld predictions are in %s\n", static_cast<long long>(masks), command.out.c_str());
    return kDone;
  }
  if (output.rank() != 1) {
    throw DataError(
        fmt::format("'{}' is of a model that gives outputs for each token, of shape {}; "
                    "`lacuna generate` continues a text by it, and `lacuna eval` with --set "
                    "data.test=FILE (data.dir=DIR for token files) tells its loss on another one",
                    path, output.to_string()));
  }
  std::vector<std::shared_ptr<const Dataset>> inputs;  // all are read before anything is written
  for (const std::string& input : command.inputs) {
    inputs.push_back(read_inputs(input, config.get("data"), format));
  }
  const Outputs kind = outputs_of(config);
  const int64_t columns = output.numel();
  CsvWriter writer(command.out);
  write_header(writer, kind, columns);
  int64_t rows = 0;
  const NoGrad no_grad;
  for (const auto& dataset : inputs) {
    for_each_batch(*dataset, kPredictBatch, [&](const Batch& batch) {
      write_rows(writer, run_model(*model, batch).value(), kind);
      rows += batch.size;
    });
  }
  writer.close();
  std::printf("%lld predictions are in %s\n", static_cast<long long>(rows), command.out.c_str());
  return kDone;
}

}  // namespace lacuna
