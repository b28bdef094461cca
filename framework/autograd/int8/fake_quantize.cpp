#include "lacuna/framework/autograd/int8/fake_quantize.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

constexpr float kMostByte = 255.0f;
constexpr int64_t kFakeGrain = int64_t{1} << 14;

struct FakeStep {
  float value;
  bool is_clipped;
};

FakeStep step_of(float x, const Int8Grid& grid) {
  const auto zero = static_cast<float>(grid.zero);
  const float step = std::nearbyint(x / grid.scale) + zero;
  const float kept = std::clamp(step, 0.0f, kMostByte);
  return {(kept - zero) * grid.scale, kept != step};
}

// The grids of rows, each for an equal share of the values.
std::vector<Int8Grid> row_grids(const Tensor& x, int64_t rows) {
  const int64_t features = x.numel() / std::max<int64_t>(rows, 1);
  std::vector<Int8Grid> grids(static_cast<size_t>(rows));
  parallel_for(rows, 16, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const float* row = x.data() + r * features;
      const auto [low, high] = std::minmax_element(row, row + features);
      grids[static_cast<size_t>(r)] = int8_grid(std::min(*low, 0.0f), std::max(*high, 0.0f));
    }
  });
  return grids;
}

// dx = x on the grid ? dy : 0   [...]
Tensor straight_through(const Tensor& x, const Tensor& dy, const Int8Grid& grid) {
  Tensor dx = Tensor::empty(x.shape(), x.order());
  const Tensor given = reordered(dy, x.order());
  const std::span<const float> from = given.storage(), at = x.storage();
  const std::span<float> into = dx.mutable_storage();
  parallel_for(static_cast<int64_t>(into.size()), kFakeGrain, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      into[i] = step_of(at[i], grid).is_clipped ? 0.0f : from[i];
    }
  });
  return dx;
}

struct FakeQuantizeNode final : Node {
  FakeQuantizeNode(Tensor x_, std::optional<Int8Grid> grid_) : x(std::move(x_)), grid(grid_) {}
  std::string_view name() const override { return "fake_quantize"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    if (!grid) return {dy};                                  // a row's own grid clips nothing
    return {straight_through(x, dy, *grid)};
  }

  Tensor x;
  std::optional<Int8Grid> grid;
};

// What x on the grid changes by where the scale does, while round(x / scale) − x / scale stays.
float scale_derivative(float x, const Int8Grid& grid) {
  const auto zero = static_cast<float>(grid.zero);
  const float quotient = x / grid.scale, step = std::nearbyint(quotient) + zero;
  const float kept = std::clamp(step, 0.0f, kMostByte);
  return kept != step ? kept - zero : kept - zero - quotient;
}

struct LearnedQuantizeNode final : Node {
  LearnedQuantizeNode(Tensor x_, const Int8Grid& grid_, double factor_)
      : x(std::move(x_)), grid(grid_), factor(factor_) {}
  std::string_view name() const override { return "fake_quantize"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    std::vector<Tensor> gradients(2);
    if (needs(0)) gradients[0] = straight_through(x, dy, grid);
    if (needs(1)) gradients[1] = Tensor::full(Shape{1}, static_cast<float>(factor * sum(dy)));
    return gradients;
  }

  // Σ dy · d, in parts that do not depend on the number of threads.
  double sum(const Tensor& dy) const {
    const Tensor given = reordered(dy, Order::RowMajor), at = reordered(x, Order::RowMajor);
    const int64_t count = x.numel(), parts = (count + kFakeGrain - 1) / kFakeGrain;
    std::vector<double> sums(static_cast<size_t>(parts));
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        double total = 0.0;
        const int64_t end = std::min(count, (part + 1) * kFakeGrain);
        for (int64_t i = part * kFakeGrain; i < end; ++i) {
          total += static_cast<double>(given.data()[i]) * scale_derivative(at.data()[i], grid);
        }
        sums[static_cast<size_t>(part)] = total;
      }
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  Tensor x;
  Int8Grid grid;
  double factor;
};

// x on a grid, in its own order.
Tensor stepped(const Tensor& x, const Int8Grid& grid) {
  Tensor y = Tensor::empty(x.shape(), x.order());
  const std::span<const float> from = x.storage();
  const std::span<float> into = y.mutable_storage();
  parallel_for(static_cast<int64_t>(into.size()), kFakeGrain, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      into[i] = step_of(from[i], grid).value;
    }
  });
  return y;
}

}  // namespace

Variable fake_quantize(const Variable& x, const std::optional<Int8Grid>& grid, int64_t rows) {
  if (grid) return record<FakeQuantizeNode>(stepped(x.value(), *grid), {x}, x.value(), grid);
  const Tensor input = x.value().to(Order::RowMajor);
  Tensor y = Tensor::empty(input.shape());
  const std::span<const float> from = input.storage();
  const std::span<float> into = y.mutable_storage();
  const std::vector<Int8Grid> grids = row_grids(input, rows);
  const auto features =
      static_cast<size_t>(std::max<int64_t>(input.numel() / std::max<int64_t>(rows, 1), 1));
  parallel_for(static_cast<int64_t>(into.size()), kFakeGrain, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      into[i] = step_of(from[i], grids[i / features]).value;
    }
  });
  return record<FakeQuantizeNode>(y, {x}, input, grid);
}

Variable fake_quantize(const Variable& x, const LearnedGrid& learned) {
  return record<LearnedQuantizeNode>(stepped(x.value(), learned.grid),
                                     {x, Variable::of(learned.parameter)}, x.value(), learned.grid,
                                     learned.gradient_factor);
}

}  // namespace lacuna
