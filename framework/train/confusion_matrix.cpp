#include "lacuna/framework/train/confusion_matrix.hpp"

#include "lacuna/framework/config/named_tensors.h"

namespace lacuna {

ConfusionMatrix::ConfusionMatrix(int64_t classes)
    : classes_(classes), counts_(static_cast<size_t>(classes * classes)) {}

void ConfusionMatrix::add(const IndexTensor& labels, const std::vector<int64_t>& predicted) {
  for (size_t i = 0; i < predicted.size(); ++i) {
    if (labels.values()[i] == kIgnoredLabel) continue;
    ++counts_[static_cast<size_t>(labels.values()[i] * classes_ + predicted[i])];
  }
}

void ConfusionMatrix::add(std::span<const double> counts) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += static_cast<int64_t>(counts[i]);
}

int64_t ConfusionMatrix::count(int64_t label, int64_t predicted) const {
  return counts_[static_cast<size_t>(label * classes_ + predicted)];
}

Config ConfusionMatrix::to_config() const {
  Config rows = Config::list();
  for (int64_t label = 0; label < classes_; ++label) {
    Config row = Config::list();
    for (int64_t predicted = 0; predicted < classes_; ++predicted) {
      row.push_back(count(label, predicted));
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace lacuna
