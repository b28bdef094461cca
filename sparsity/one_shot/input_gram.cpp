#include "lacuna/sparsity/one_shot/input_gram.h"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"

namespace lacuna {
namespace {

constexpr int64_t kRows = 1024;   // of a product in float32
constexpr int64_t kPanel = 512;   // features of one side of a product
constexpr int64_t kGrain = 1024;  // of copies and sums

size_t square(int64_t features) {
  return static_cast<size_t>(features) * static_cast<size_t>(features);
}

// Columns begin … begin + width of `rows` as a matrix of their own.
void copy_panel(std::span<const float> rows, int64_t features, int64_t begin, int64_t width,
                std::vector<float>& panel) {
  const int64_t count = static_cast<int64_t>(rows.size()) / features;
  panel.resize(static_cast<size_t>(count * width));
  for (int64_t r = 0; r < count; ++r) {
    std::copy_n(rows.data() + r * features + begin, width, panel.data() + r * width);
  }
}

}  // namespace

InputGram::InputGram(int64_t features) : features_(features) {
  if (features < 0) {
    throw ShapeError(fmt::format(
        "the number of features of a Gram matrix must be at least 0, found {}", features));
  }
}

InputGram InputGram::of_matrix(int64_t features, std::span<const double> matrix, int64_t rows) {
  InputGram gram(features);
  if (matrix.size() != square(features)) {
    throw ShapeError(
        fmt::format("a Gram matrix of {} needs {}, found {}", plural(features, "feature"),
                    plural(static_cast<int64_t>(square(features)), "value"), matrix.size()));
  }
  gram.rows_ = rows;
  gram.matrix_.assign(matrix.begin(), matrix.end());
  gram.is_whole_ = false;
  return gram;
}

InputGram InputGram::of_independent(int64_t features) {
  InputGram gram(features);
  gram.rows_ = 1;
  gram.is_independent_ = true;
  return gram;
}

void InputGram::allocate() const {
  if (!matrix_.empty()) return;
  matrix_.assign(square(features_), 0.0);
  if (!is_independent_) return;
  for (int64_t i = 0; i < features_; ++i) matrix_[static_cast<size_t>(i * (features_ + 1))] = 1.0;
}

void InputGram::add(std::span<const float> rows) {
  const auto width = static_cast<size_t>(features_);
  if (width == 0 ? !rows.empty() : rows.size() % width != 0) {
    throw ShapeError(fmt::format("expected whole rows of {}, found {}",
                                 plural(features_, "feature"),
                                 plural(static_cast<int64_t>(rows.size()), "value")));
  }
  const size_t limit = static_cast<size_t>(kRows) * width;
  while (!rows.empty()) {
    waiting_.reserve(limit);
    const size_t count = std::min(limit - waiting_.size(), rows.size());
    waiting_.insert(waiting_.end(), rows.begin(), rows.begin() + static_cast<ptrdiff_t>(count));
    rows = rows.subspan(count);
    rows_ += static_cast<int64_t>(count / width);
    if (is_independent_) {
      allocate();
      is_independent_ = false;
    }
    if (waiting_.size() == limit) take_waiting();
  }
}

// The lower triangle by tiles of two panels of features, and those on the diagonal whole.
void InputGram::take_waiting() const {
  if (waiting_.empty()) return;
  allocate();
  const int64_t count = static_cast<int64_t>(waiting_.size()) / features_;
  std::vector<float> left, right, product;
  for (int64_t i = 0; i < features_; i += kPanel) {
    const int64_t height = std::min(kPanel, features_ - i);
    copy_panel(waiting_, features_, i, height, left);
    for (int64_t j = 0; j <= i; j += kPanel) {
      const int64_t width = std::min(kPanel, features_ - j);
      if (j < i) copy_panel(waiting_, features_, j, width, right);
      product.resize(static_cast<size_t>(height * width));
      gemm({.m = height,
            .n = width,
            .k = count,
            .transpose_a = Transpose::Yes,
            .a = left.data(),
            .b = j < i ? right.data() : left.data(),
            .c = product.data()});
      parallel_for(height, std::max<int64_t>(kGrain * 16 / width, 1),
                   [&](int64_t from, int64_t to) {
                     for (int64_t r = from; r < to; ++r) {
                       double* into = matrix_.data() + (i + r) * features_ + j;
                       const float* of = product.data() + r * width;
                       for (int64_t c = 0; c < width; ++c) into[c] += static_cast<double>(of[c]);
                     }
                   });
    }
  }
  waiting_.clear();
  is_whole_ = false;
}

// Rows are not awaited any more: their memory is for others.
void InputGram::take_last() const {
  take_waiting();
  waiting_ = std::vector<float>();  // {} would keep its memory
}

std::span<const double> InputGram::matrix() const {
  take_last();
  allocate();
  if (!is_whole_) {
    constexpr int64_t kTile = 64;  // so that lines of both triangles stay in the cache
    const int64_t tiles = (features_ + kTile - 1) / kTile;
    parallel_blocks(tiles, [&](int64_t tile) {
      const int64_t first = tile * kTile, last = std::min(first + kTile, features_);
      for (int64_t j = 0; j < last; j += kTile) {
        for (int64_t r = first; r < last; ++r) {
          for (int64_t c = j; c < std::min(j + kTile, r); ++c) {
            matrix_[static_cast<size_t>(c * features_ + r)] =
                matrix_[static_cast<size_t>(r * features_ + c)];
          }
        }
      }
    });
    is_whole_ = true;
  }
  return matrix_;
}

std::vector<double> InputGram::squares() const {
  take_last();
  std::vector<double> diagonal(static_cast<size_t>(features_), is_independent_ ? 1.0 : 0.0);
  if (matrix_.empty()) return diagonal;
  for (size_t i = 0; i < diagonal.size(); ++i) {
    diagonal[i] = matrix_[i * static_cast<size_t>(features_) + i];
  }
  return diagonal;
}

}  // namespace lacuna
