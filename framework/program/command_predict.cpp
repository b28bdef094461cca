// `lacuna predict`: outputs of a trained model for inputs without targets, as CSV.
#include <fmt/core.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/io/storage/file_system.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/program/checkpoint_choice.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/predict_inputs.hpp"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/run_folder.h"
#include "lacuna/framework/train/run_model.h"

namespace lacuna {
namespace {

constexpr int64_t kPredictBatch = 1000;

// In quotes where it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// Written beside the file and put in its place when it is whole. What is there and no file (a link,
// a pipe, a device such as /dev/stdout) must not be replaced, and is written to.
class CsvWriter {
 public:
  CsvWriter(const std::string& path, std::vector<std::string> class_names)
      : path_(path), class_names_(std::move(class_names)) {
    std::error_code missing;
    const auto there = std::filesystem::symlink_status(path, missing);
    if (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)) {
      replacement_.emplace(path);
    }
    file_ = std::fopen(replacement_ ? replacement_->temporary_path().c_str() : path.c_str(), "w");
    if (file_ == nullptr) fail();
  }
  ~CsvWriter() {
    if (file_ != nullptr) std::fclose(file_);
  }
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  void class_header(int64_t classes) {
    std::fputs("class", file_);
    for (int64_t j = 0; j < classes; ++j) std::fprintf(file_, ",p%lld", static_cast<long long>(j));
    std::fputc('\n', file_);
  }
  /// The class with the largest logit, and the softmax of the logits.
  void class_row(const float* logits, int64_t classes, int64_t best) {
    double sum = 0.0;
    for (int64_t j = 0; j < classes; ++j) sum += exp_below(logits, j, best);
    const auto label = static_cast<size_t>(best);
    if (label < class_names_.size()) {
      std::fputs(csv_field(class_names_[label]).c_str(), file_);
    } else {
      std::fprintf(file_, "%lld", static_cast<long long>(best));
    }
    for (int64_t j = 0; j < classes; ++j) {
      std::fprintf(file_, ",%.9g", exp_below(logits, j, best) / sum);
    }
    std::fputc('\n', file_);
  }

  /// Probabilities of decisions that are independent of each other; of a single one as of two
  /// classes.
  void decision_header(int64_t decisions) {
    if (decisions == 1) return class_header(2);
    for (int64_t j = 0; j < decisions; ++j) {
      std::fprintf(file_, "%sp%lld", j > 0 ? "," : "", static_cast<long long>(j));
    }
    std::fputc('\n', file_);
  }
  void decision_row(const float* logits, int64_t decisions) {
    if (decisions == 1) {
      const float both[] = {0.0f, logits[0]};  // whose softmax is 1 − σ and σ
      return class_row(both, 2, logits[0] > 0.0f ? 1 : 0);
    }
    for (int64_t j = 0; j < decisions; ++j) {
      std::fprintf(file_, "%s%.9g", j > 0 ? "," : "", 1.0 / (1.0 + std::exp(-double{logits[j]})));
    }
    std::fputc('\n', file_);
  }

  void value_header(int64_t outputs) {
    for (int64_t j = 0; j < outputs; ++j) {
      std::fprintf(file_, "%sy%lld", j > 0 ? "," : "", static_cast<long long>(j));
    }
    std::fputc('\n', file_);
  }
  void value_row(const float* values, int64_t outputs) {
    for (int64_t j = 0; j < outputs; ++j) {
      std::fprintf(file_, "%s%.9g", j > 0 ? "," : "", static_cast<double>(values[j]));
    }
    std::fputc('\n', file_);
  }

  /// *Errors:* StateError when not everything could be written.
  void close() {
    if (std::fflush(file_) != 0 || std::ferror(file_) != 0) fail();
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail();
    if (!replacement_) return;
    replacement_->flush();
    replacement_->commit();
  }

 private:
  static double exp_below(const float* logits, int64_t j, int64_t best) {
    return std::exp(static_cast<double>(logits[j]) - static_cast<double>(logits[best]));
  }
  [[noreturn]] void fail() const {
    throw StateError("cannot write '" + path_ + "': " + std::strerror(errno));
  }

  std::string path_;
  std::vector<std::string> class_names_;  // written in place of numbers
  std::optional<FileReplacement> replacement_;
  std::FILE* file_ = nullptr;
};

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

// Targets that were scaled for training come back as they were.
Tensor in_original_unit(const Tensor& outputs, const InputFormat& format) {
  if (format.target_std.empty()) return outputs;
  Tensor rows = reordered(outputs, Order::RowMajor).clone();
  const size_t columns = format.target_std.size();
  float* values = rows.mutable_data();
  for (size_t i = 0; i < static_cast<size_t>(rows.numel()); ++i) {
    const size_t j = i % columns;
    values[i] = static_cast<float>(values[i] * format.target_std[j] + format.target_mean[j]);
  }
  return rows;
}

// What the answers that a table had beside its inputs say of the predictions.
class KnownAnswers {
 public:
  void add(const Tensor& outputs, const Batch& batch, Outputs kind) {
    count_ += batch.size;
    has_values_ = kind == Outputs::Values;
    if (kind == Outputs::Classes) {
      correct_ += count_correct(outputs, batch.labels);
      return;
    }
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

  void print(const std::string& column) const {
    if (count_ == 0) return;
    const auto n = static_cast<double>(count_);
    const auto count = static_cast<long long>(count_);
    if (has_values_) {
      std::printf("RMSE %.6g, MAE %.6g of %lld examples, by the column '%s'\n",
                  std::sqrt(squares_ / n), distances_ / n, count, column.c_str());
    } else {
      std::printf("accuracy %.2f %% of %lld examples, by the column '%s'\n",
                  100.0 * static_cast<double>(correct_) / n, count, column.c_str());
    }
  }

 private:
  int64_t count_ = 0, correct_ = 0;
  double squares_ = 0.0, distances_ = 0.0;
  bool has_values_ = false;
};

// The inputs, and the model, are not to be lost.
void require_other_file(const PredictCommand& command, const std::string& checkpoint) {
  std::vector<std::string> read = command.inputs;
  read.push_back(checkpoint);
  for (const std::string& input : read) {
    std::error_code missing;
    const bool is_same = std::filesystem::equivalent(command.out, input, missing);
    if (!is_same || missing || !std::filesystem::is_regular_file(input, missing)) continue;
    throw ConfigError("--out '" + command.out + "' is the file '" + input +
                      "' that is read, and would be overwritten; give another name");
  }
}

}  // namespace

int run_predict(const PredictCommand& command) {
  const CheckpointFile file = choose_checkpoint(command.checkpoint, command.last);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  const Config config = saved_config(checkpoint, path);
  InputFormat format;
  naming_file(path, [&] { format = InputFormat::from_state(checkpoint.state.below("data")); });
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });
  require_other_file(command, path);
  std::vector<PredictInputs> inputs;  // all are read before anything is written
  for (const std::string& input : command.inputs) {
    inputs.push_back(read_predict_inputs(input, config.get("data"), format));
  }
  const Outputs kind = outputs_of(config);
  const Shape output = model->output_shape(format.example_shape);
  if (output.rank() != 1) {
    throw DataError(
        fmt::format("'{}' is of a model that gives outputs for each token, of shape {}; "
                    "`lacuna generate` continues a text by it",
                    path, output.to_string()));
  }
  const int64_t columns = output.numel();
  const bool has_names = config.get("data").get("type").text() == "csv";
  CsvWriter writer(command.out, has_names ? format.class_names : std::vector<std::string>());
  write_header(writer, kind, columns);
  int64_t rows = 0;
  KnownAnswers known;
  const NoGrad no_grad;
  for (const PredictInputs& input : inputs) {
    for_each_batch(*input.dataset, kPredictBatch, [&](const Batch& batch) {
      const Tensor outputs = in_original_unit(run_model(*model, batch).value(), format);
      write_rows(writer, outputs, kind);
      if (input.has_answers) known.add(outputs, batch, kind);
      rows += batch.size;
    });
  }
  writer.close();
  std::printf("%lld predictions are in %s\n", static_cast<long long>(rows), command.out.c_str());
  known.print(format.label_column);
  return kDone;
}

}  // namespace lacuna
