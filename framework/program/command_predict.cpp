// `lacuna predict`: outputs of a trained model for inputs without targets, as CSV.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/csv_writer.hpp"
#include "lacuna/framework/program/output/label_prediction.hpp"
#include "lacuna/framework/program/output/masked_prediction.hpp"
#include "lacuna/framework/program/output/output_guard.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/predict_inputs.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/known_data.hpp"
#include "lacuna/framework/train/loss_function.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

constexpr int64_t kPredictBatch = 1000;

constexpr const char* kStandardOutput = "-";  // as --out

void write_header(CsvWriter& writer, LossKind kind, int64_t columns) {
  switch (kind) {
    case LossKind::CrossEntropy:
      return writer.class_header(columns);
    case LossKind::BinaryCrossEntropy:
      return writer.decision_header(columns);
    case LossKind::MeanSquaredError:
      return writer.value_header(columns);
    case LossKind::MultiLabel:
      return writer.top_header(kWrittenClasses);
  }
}

// `files` are those of the examples; empty without a column of files.
void write_rows(CsvWriter& writer, const Tensor& outputs, LossKind kind,
                std::span<const std::string> files) {
  const Tensor rows = reordered(outputs, Order::RowMajor);
  const int64_t columns = rows.shape().features();
  const std::vector<int64_t> best =
      kind == LossKind::CrossEntropy ? argmax_rows(rows) : std::vector<int64_t>();
  for (int64_t i = 0; i < rows.shape().batch(); ++i) {
    const float* row = rows.data() + i * columns;
    if (!files.empty()) writer.file_field(files[static_cast<size_t>(i)]);
    switch (kind) {
      case LossKind::CrossEntropy:
        writer.class_row(row, columns, best[static_cast<size_t>(i)]);
        break;
      case LossKind::BinaryCrossEntropy:
        writer.decision_row(row, columns);
        break;
      case LossKind::MeanSquaredError:
        writer.value_row(row, columns);
        break;
      case LossKind::MultiLabel:
        break;  // written by predict_labels
    }
  }
}

// Compares the predictions with the answers that a table had next to its inputs.
class KnownAnswers {
 public:
  void add(const Tensor& outputs, const Batch& batch, LossKind kind) {
    has_values_ = kind == LossKind::MeanSquaredError;
    if (kind == LossKind::CrossEntropy) {
      count_ += batch.size - std::ranges::count(batch.labels.values(), kIgnoredLabel);
      correct_ += count_correct(outputs, batch.labels);
      return;
    }
    count_ += batch.size;
    const std::vector<float> predicted = outputs.to_vector();
    const std::vector<float> targets =
        batch.targets.defined() ? batch.targets.to_vector() : std::vector<float>();
    for (size_t i = 0; i < predicted.size(); ++i) {
      const double answer = targets.empty() ? static_cast<double>(batch.labels.values()[i])
                                            : static_cast<double>(targets[i]);
      const double off = static_cast<double>(predicted[i]) - answer;
      squares_ += off * off;
      distances_ += std::abs(off);
      correct_ += (predicted[i] > 0.0f) == (answer > 0.5) ? 1 : 0;
    }
  }

  // `column`: the answers', or empty where it has no name.
  void print(const std::string& column, std::FILE* out) const {
    if (count_ == 0) return;
    const std::string by = column.empty() ? "its labels" : "the column '" + column + "'";
    const auto n = static_cast<double>(count_);
    const auto count = static_cast<long long>(count_);
    if (has_values_) {
      std::fprintf(out, "RMSE %s, MAE %s of %lld examples, by %s\n",
                   rounded(std::sqrt(squares_ / n)).c_str(), rounded(distances_ / n).c_str(), count,
                   by.c_str());
    } else {
      std::fprintf(out, "accuracy %.2f %% of %lld examples, by %s\n",
                   100.0 * static_cast<double>(correct_) / n, count, by.c_str());
    }
  }

 private:
  int64_t count_ = 0, correct_ = 0;
  double squares_ = 0.0, distances_ = 0.0;
  bool has_values_ = false;
};

// The inputs, the model, and its training data must not be overwritten.
void require_other_file(const PredictCommand& command, const std::string& checkpoint,
                        const Config& config) {
  if (command.out == kStandardOutput) return;
  std::vector<std::string> read = files_named_in(config);
  read.push_back(checkpoint);
  read.insert(read.end(), command.inputs.begin(), command.inputs.end());
  require_not_read("--out", command.out, read);
  require_no_file_of_a_run("--out", command.out);
  if (!command.overwrite) require_text_or_nothing("--out", command.out);
}

// If one input is a folder, every example is named by its file, those of other inputs too.
void name_files(const PredictCommand& command, std::vector<PredictInputs>& inputs) {
  const bool has_folder =
      std::ranges::any_of(inputs, [](const PredictInputs& input) { return !input.files.empty(); });
  for (size_t i = 0; has_folder && i < inputs.size(); ++i) {
    inputs[i].files.resize(static_cast<size_t>(inputs[i].dataset->size()), command.inputs[i]);
  }
}

// Whether its examples are sparse, and have several labels each.
bool reads_features(Module& model) {
  return std::ranges::any_of(model.modules(), [](const Module* module) {
    const auto* user = dynamic_cast<const NamedInputUser*>(module);
    return user != nullptr && user->requested_input().name == kFeatureIds;
  });
}

// Where messages about the predictions go: not among the predictions.
std::FILE* told_to(const PredictCommand& command) {
  return command.out == kStandardOutput ? stderr : stdout;
}

void report_count(int64_t count, const PredictCommand& command) {
  const std::string where =
      command.out == kStandardOutput ? "on the standard output" : "in " + command.out;
  std::fprintf(told_to(command), "%lld %s %s\n", static_cast<long long>(count),
               count == 1 ? "prediction is" : "predictions are", where.c_str());
}

}  // namespace

int run_predict(const PredictCommand& command) {
  if (command.threads) set_num_threads(static_cast<int>(*command.threads));
  const CheckpointFile file = choose_checkpoint(command.checkpoint, command.last, print_note);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  const Config config = saved_config(checkpoint, path);
  InputFormat format;
  naming_file(path, [&] { format = InputFormat::from_state(checkpoint.state.below("data")); });
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });
  if (const std::string note = slow_int8_note(checkpoint.state); !note.empty()) print_note(note);
  require_other_file(command, path, config);
  const Shape output = model->output_shape(format.example_shape);
  if (is_masked_language_model(config)) {
    const auto lines = read_masked_lines(command.inputs, config.get("data"), format);
    CsvWriter writer(command.out);
    const int64_t masks = fill_masks(*model, lines, format, writer);
    writer.close();
    report_count(masks, command);
    return kDone;
  }
  if (output.rank() != 1) {
    throw DataError(
        fmt::format("the model in '{}' returns outputs for each token, of shape {}; use `lacuna "
                    "generate` to continue a text, or `lacuna eval` with --set data.test=FILE "
                    "(data.dir=DIR for token files) for its loss on another one",
                    path, output.to_string()));
  }
  const bool has_label_lists = reads_features(*model);
  const KnownData known = known_data(config, format, *model);
  std::vector<PredictInputs> inputs;  // all are read before anything is written
  for (const std::string& input : command.inputs) {
    const Config data = config.get("data");
    inputs.push_back(has_label_lists ? read_sparse_inputs(input, data, known)
                                     : read_predict_inputs(input, data, format, known));
  }
  name_files(command, inputs);
  const LossKind kind = has_label_lists ? LossKind::MultiLabel : loss_kind(config);
  const int64_t columns = output.numel();
  CsvWriter writer(command.out, format.class_names);
  if (!inputs.front().files.empty()) writer.file_header();
  write_header(writer, kind, columns);
  if (has_label_lists) {
    LabelPredictions predictions;
    for (const PredictInputs& input : inputs) {
      predict_labels(*model, *input.dataset, writer, predictions);
    }
    writer.close();
    report_count(predictions.examples, command);
    if (predictions.labelled > 0) {
      std::fprintf(told_to(command), "%s\n", predictions.in_words().c_str());
    }
    return kDone;
  }
  int64_t rows = 0;
  const Config loss = config.get("loss");
  const auto ignored = loss.is_map() ? loss.optional<int64_t>("ignore_index") : std::nullopt;
  KnownAnswers answers;
  const int64_t at_a_time = example_pieces(*model, format.example_shape, kPredictBatch).examples;
  const NoGrad no_grad;
  for (const PredictInputs& input : inputs) {
    std::span<const std::string> files = input.files;
    DataSplits splits;
    splits.train = input.dataset;
    if (ignored && input.has_answers) splits = with_ignored_label(splits, *ignored);
    for_each_batch(*splits.train, at_a_time, [&](const Batch& batch) {
      const Tensor outputs = in_target_unit(run_model(*model, batch).value(), format);
      const size_t named = files.empty() ? 0 : static_cast<size_t>(batch.size);
      write_rows(writer, outputs, kind, files.first(named));
      files = files.subspan(named);
      if (input.has_answers) answers.add(outputs, batch, kind);
      rows += batch.size;
    });
  }
  writer.close();
  report_count(rows, command);
  answers.print(format.label_column, told_to(command));
  return kDone;
}

}  // namespace lacuna
