// `lacuna eval` and `lacuna predict`: using a trained model.
#include <cmath>
#include <cstdio>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/data/csv.h"
#include "lacuna/framework/data/idx.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/commands.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {
namespace {

constexpr int64_t kPredictBatch = 1000;

struct Loaded {
  std::string path;
  Checkpoint checkpoint;
  Config config;
};

Loaded load(const std::string& file_or_folder) {
  Loaded loaded{.path = find_checkpoint(file_or_folder), .checkpoint = {}, .config = {}};
  loaded.checkpoint = read_checkpoint(loaded.path);
  loaded.config = parse_yaml(loaded.checkpoint.config_yaml, loaded.path);
  return loaded;
}

Config to_config(const char* split, const Evaluation& result) {
  Config entry = Config::map({{"split", split}, {"loss", result.loss}});
  if (!std::isnan(result.accuracy)) entry.set("accuracy", result.accuracy);
  entry.set("examples", result.examples);
  return entry;
}

// The shape and the normalization that the model was trained with.
struct InputFormat {
  Shape example_shape;
  Normalization normalization;
};

InputFormat input_format(const StateDict& state) {
  const auto values = [&](const char* name) {
    const std::vector<float> floats = state.get<Tensor>(name).to_vector();
    return std::vector<double>(floats.begin(), floats.end());
  };
  return {Shape(state.get<std::vector<int64_t>>("data/example_shape")),
          {.mean = values("data/mean"), .std = values("data/std")}};
}

// A table is read as the training data's was, but for the label, which is not there.
Examples read_inputs(const std::string& path, const Config& data) {
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) {
    CsvOptions options{.task = Task::None};
    if (!data.get<bool>("header", true)) options.header = CsvHeader::Absent;
    options.delimiter = data.get<std::string>("delimiter", ",").front();
    return read_csv(path, options).examples;
  }
  IdxImages images = read_idx_images(path);
  return {.example_shape = Shape{images.rows, images.columns}, .inputs = std::move(images.pixels)};
}

class CsvWriter {
 public:
  explicit CsvWriter(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
    if (file_ == nullptr)
      throw StateError("cannot write '" + path + "': no such folder, or no right to");
  }
  ~CsvWriter() {
    if (file_ != nullptr) std::fclose(file_);
  }
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  void header(bool classes, int64_t columns) {
    std::string line = classes ? "class" : "";
    for (int64_t j = 0; j < columns; ++j) {
      line += (line.empty() ? "" : ",") + std::string(classes ? "p" : "y") + std::to_string(j);
    }
    std::fprintf(file_, "%s\n", line.c_str());
  }

  // Softmax probabilities behind the class, or the values as they are.
  void rows(const Tensor& output, bool classes) {
    const int64_t columns = output.shape().features();
    const std::vector<int64_t> best = classes ? argmax_rows(output) : std::vector<int64_t>();
    for (int64_t i = 0; i < output.shape().batch(); ++i) {
      const float* row = output.data() + i * columns;
      double sum = 0.0;
      const double largest = classes ? row[best[static_cast<size_t>(i)]] : 0.0;
      for (int64_t j = 0; classes && j < columns; ++j) sum += std::exp(row[j] - largest);
      if (classes)
        std::fprintf(file_, "%lld", static_cast<long long>(best[static_cast<size_t>(i)]));
      for (int64_t j = 0; j < columns; ++j) {
        const double value = classes ? std::exp(row[j] - largest) / sum : row[j];
        std::fprintf(file_, "%s%.9g", classes || j > 0 ? "," : "", value);
      }
      std::fputc('\n', file_);
    }
  }

  void close() {
    const bool failed = std::ferror(file_) != 0;
    if ((std::fclose(std::exchange(file_, nullptr)) != 0) || failed) {
      throw StateError("'" + path_ + "' could not be written in full: is the disk full?");
    }
  }

 private:
  std::string path_;
  std::FILE* file_;
};

}  // namespace

int run_eval(const EvalCommand& command) {
  Loaded loaded = load(command.checkpoint);
  for (const std::string& assignment : command.overrides) {
    apply_override(loaded.config, assignment);
  }
  const TrainOptions train = TrainOptions::from_config(loaded.config.get("train"));
  if (train.threads > 0) set_num_threads(train.threads);
  const DataSplits data = load_data(loaded.config.at("data"), train.seed);
  const LossFunction loss = LossFunction::from_config(loaded.config, *data.train);
  const auto model =
      load_model(loaded.config, loaded.checkpoint.state, data.train->example_shape());
  Config results = Config::list();
  if (data.validation != nullptr) {
    results.push_back(
        to_config("validation", evaluate(*model, loss, *data.validation, train.eval_batch_size)));
  }
  if (data.test != nullptr) {
    results.push_back(to_config("test", evaluate(*model, loss, *data.test, train.eval_batch_size)));
  }
  if (results.items().empty()) {
    throw DataError("the data has neither a test nor a validation split to evaluate on");
  }
  if (command.json) {
    const Config report = Config::map(
        {{"checkpoint", loaded.path}, {"step", loaded.checkpoint.step}, {"splits", results}});
    std::fputs(report.to_json_indented().c_str(), stdout);
    return kDone;
  }
  for (const Config& entry : results.items()) {
    std::printf("%-10s loss %.6g", entry.required<std::string>("split").c_str(),
                entry.required<double>("loss"));
    if (entry.has("accuracy"))
      std::printf("  accuracy %.2f %%", 100 * entry.required<double>("accuracy"));
    std::printf("  (%lld examples, step %lld)\n",
                static_cast<long long>(entry.required<int64_t>("examples")),
                static_cast<long long>(loaded.checkpoint.step));
  }
  return kDone;
}

int run_predict(const PredictCommand& command) {
  const Loaded loaded = load(command.checkpoint);
  const StateDict& state = loaded.checkpoint.state;
  const InputFormat format = input_format(state);
  const auto model = load_model(loaded.config, state, format.example_shape);
  const Config loss = loaded.config.get("loss");
  const bool classes = (loss.is_map() ? loss.get("type") : loss).text() == "cross_entropy";
  std::vector<std::shared_ptr<const Dataset>> inputs;  // all are read before anything is written
  for (const std::string& path : command.inputs) {
    Examples examples = read_inputs(path, loaded.config.get("data"));
    if (examples.example_shape != format.example_shape) {
      throw DataError("'" + path + "' has inputs of shape " + examples.example_shape.to_string() +
                      "; the model was trained on " + format.example_shape.to_string());
    }
    inputs.push_back(ArrayDataset(std::move(examples)).normalized(format.normalization));
  }
  CsvWriter writer(command.out);
  writer.header(classes, model->output_shape(format.example_shape).numel());
  int64_t rows = 0;
  const NoGrad no_grad;
  for (const auto& dataset : inputs) {
    for_each_batch(*dataset, kPredictBatch, [&](const Batch& batch) {
      writer.rows((*model)(Variable(batch.inputs)).value().to(Order::RowMajor), classes);
      rows += batch.size;
    });
  }
  writer.close();
  std::printf("%lld predictions are in %s\n", static_cast<long long>(rows), command.out.c_str());
  return kDone;
}

}  // namespace lacuna
