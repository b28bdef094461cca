#include "lacuna/framework/program/output/label_prediction.hpp"

#include <fmt/core.h>

#include <span>
#include <string>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/train/label_lists.hpp"
#include "lacuna/framework/train/run_model.hpp"

namespace lacuna {

void predict_labels(Module& model, const Dataset& data, CsvWriter& writer,
                    LabelPredictions& predictions) {
  constexpr int64_t kAtOnce = 256;
  const NoGrad no_grad;
  for_each_batch(data, kAtOnce, [&](const Batch& batch) {
    const TopClasses top = top_classes(run_model(model, batch), kWrittenClasses);
    const std::array<double, 3> hits = count_hits(top, batch);
    for (size_t k = 0; k < hits.size(); ++k) predictions.hits[k] += hits[k];
    const IndexTensor& lists = batch.named.at(kLabelLists);
    for (int64_t i = 0; i < batch.size; ++i) {
      const auto first = static_cast<size_t>(i * top.count), count = static_cast<size_t>(top.count);
      writer.top_row(std::span(top.classes).subspan(first, count),
                     std::span(top.outputs).subspan(first, count));
      const int64_t label = lists.values()[static_cast<size_t>(i * lists.shape()[1])];
      predictions.labelled += label != kIgnoredLabel ? 1 : 0;
    }
    predictions.examples += batch.size;
  });
}

std::string LabelPredictions::in_words() const {
  std::string words;
  for (size_t k = 0; k < hits.size(); ++k) {
    const double most = static_cast<double>(examples * kPrecisions[k].count);
    words += fmt::format("P@{} {:.2f} %{}", kPrecisions[k].count, 100.0 * hits[k] / most,
                         k + 1 < hits.size() ? "  " : "");
  }
  return fmt::format("{} of {} examples, by their labels", words, examples);
}

}  // namespace lacuna
