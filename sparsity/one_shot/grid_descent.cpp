#include "lacuna/sparsity/one_shot/grid_descent.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

constexpr int kMostPasses = 8;

// One row: e = ŵ − w, and the slope (H + δ diag H) e at the columns that may change.
class RowDescent {
 public:
  RowDescent(std::span<const double> gram, double damping, std::span<const float> weight,
             std::vector<int64_t> columns, float scale, std::span<float> onto)
      : gram_(gram), damping_(damping), scale_(scale), columns_(std::move(columns)), onto_(onto) {
    const size_t features = weight.size();
    slopes_.resize(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto column = static_cast<size_t>(columns_[i]);
      const double* row = gram_.data() + column * features;
      double slope = damping_ * row[column] * error(weight, column);
      for (size_t j = 0; j < features; ++j) slope += row[j] * error(weight, j);
      slopes_[i] = slope;
    }
    features_ = features;
  }

  void run() {
    for (int pass = 0; pass < kMostPasses && changes(); ++pass) {
    }
  }

 private:
  double error(std::span<const float> weight, size_t column) const {
    return static_cast<double>(onto_[column]) - static_cast<double>(weight[column]);
  }
  double at(int64_t row, int64_t column) const {
    return gram_[static_cast<size_t>(row) * features_ + static_cast<size_t>(column)];
  }

  // Once through the row; false if nothing has changed.
  bool changes() {
    bool is_changed = false;
    for (size_t i = 0; i < columns_.size(); ++i) {
      float& value = onto_[static_cast<size_t>(columns_[i])];
      const double curvature = at(columns_[i], columns_[i]) * (1.0 + damping_);
      const double best = static_cast<double>(value) - slopes_[i] / curvature;
      const float step = on_grid(static_cast<float>(best), scale_);
      const double change = static_cast<double>(step) - static_cast<double>(value);
      // Of two steps that are as good, the one that is there.
      if (!(std::abs(best - static_cast<double>(step)) <
            (1.0 - 1e-6) * std::abs(best - static_cast<double>(value)))) {
        continue;
      }
      for (size_t j = 0; j < columns_.size(); ++j) {
        slopes_[j] += change * at(columns_[i], columns_[j]);
      }
      slopes_[i] += change * damping_ * at(columns_[i], columns_[i]);
      value = step;
      is_changed = true;
    }
    return is_changed;
  }

  std::span<const double> gram_;
  size_t features_ = 0;
  double damping_;
  float scale_;
  std::vector<int64_t> columns_;
  std::span<float> onto_;
  std::vector<double> slopes_;
};

}  // namespace

void descend_on_grid(const Tensor& weight, const InputGram& gram, const MaskSet& mask,
                     const std::vector<float>& scales, Tensor& onto) {
  const int64_t columns = gram.features();
  const auto width = static_cast<size_t>(columns);
  const std::span<const double> matrix = gram.matrix();
  const double damping = automatic_damping(gram);
  const std::span<const float> from = weight.storage();
  const std::span<float> into = onto.mutable_storage();
  std::vector<std::vector<int64_t>> kept(scales.size());
  mask.positions().for_each([&](int64_t i) {
    const int64_t column = i % columns;
    if (matrix[static_cast<size_t>(column * columns + column)] == 0.0) return;
    kept[static_cast<size_t>(i / columns)].push_back(column);
  });
  parallel_for(static_cast<int64_t>(scales.size()), 1, [&](int64_t first, int64_t last) {
    for (auto r = static_cast<size_t>(first); r < static_cast<size_t>(last); ++r) {
      RowDescent(matrix, damping, from.subspan(r * width, width), std::move(kept[r]), scales[r],
                 into.subspan(r * width, width))
          .run();
    }
  });
}

}  // namespace lacuna
