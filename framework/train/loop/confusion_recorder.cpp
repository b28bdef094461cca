#include "lacuna/framework/train/loop/confusion_recorder.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {

bool ConfusionRecorder::is_counted(const std::string& split) const {
  const bool is_of_run = split == (experiment_.data.test != nullptr ? "test" : "validation");
  const LossFunction& loss = experiment_.loss;
  return is_of_run && !loss.has_token_labels() && loss.num_classes() > 0 &&
         loss.num_classes() <= kMostClasses;
}

BatchWatcher ConfusionRecorder::watcher(const std::string& split, int64_t step) {
  if (!is_counted(split)) return nullptr;
  matrix_.emplace(experiment_.loss.num_classes());
  split_ = split;
  step_ = step;
  return [this](const Tensor& output, const Batch& batch) {
    matrix_->add(batch.labels, experiment_.loss.predicted_classes(output));
  };
}

void ConfusionRecorder::write(int64_t step, const std::string& folder) {
  Communicator* job = experiment_.communicator();
  const auto& test = experiment_.data.test;
  const auto& data = test != nullptr ? test : experiment_.data.validation;
  const char* split = test != nullptr ? "test" : "validation";
  const bool is_missing = !matrix_ || step_ != step;
  if (is_missing && (job != nullptr || folder.empty() || data == nullptr || !is_counted(split))) {
    return;
  }
  if (is_missing) {
    const auto averaged = experiment_.average ? experiment_.average->show() : nullptr;
    evaluate(*experiment_.model, experiment_.loss, *data, experiment_.train.eval_batch_size,
             watcher(split, step));
  }
  ConfusionMatrix sum(matrix_->classes());
  if (job != nullptr) {
    for (const std::vector<double>& counts : job->gather(matrix_->numbers())) sum.add(counts);
  } else {
    sum.add(matrix_->numbers());
  }
  if (folder.empty() || !experiment_.is_first()) return;
  Config file = Config::map({{"step", step_}, {"split", split_}});
  const std::vector<std::string> names = data->class_names();
  if (!names.empty()) file.set("classes", Config::from_value(names));
  file.set("counts", sum.to_config());
  write_file_atomically(folder + "/confusion.json", file.to_json() + "\n");
}

}  // namespace lacuna
