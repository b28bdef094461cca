#include "lacuna/framework/autograd/int8/fake_quantize.hpp"

#include <algorithm>
#include <cmath>
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

struct FakeQuantizeNode final : Node {
  FakeQuantizeNode(Tensor x_, std::optional<Int8Grid> grid_) : x(std::move(x_)), grid(grid_) {}
  std::string_view name() const override { return "fake_quantize"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    if (!grid) return {dy};                                  // a row's own grid clips nothing
    Tensor dx = Tensor::empty(x.shape(), x.order());
    const Tensor given = reordered(dy, x.order());
    const std::span<const float> from = given.storage(), at = std::as_const(x).storage();
    const std::span<float> into = dx.mutable_storage();
    parallel_for(static_cast<int64_t>(into.size()), kFakeGrain, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        into[i] = step_of(at[i], *grid).is_clipped ? 0.0f : from[i];
      }
    });
    return {dx};  // dx = x on the grid ? dy : 0   [...]
  }

  Tensor x;
  std::optional<Int8Grid> grid;
};

}  // namespace

Variable fake_quantize(const Variable& x, const std::optional<Int8Grid>& grid, int64_t rows) {
  const Tensor input = grid ? x.value() : x.value().to(Order::RowMajor);
  Tensor y = Tensor::empty(input.shape(), input.order());
  const std::span<const float> from = input.storage();
  const std::span<float> into = y.mutable_storage();
  const std::vector<Int8Grid> grids = grid ? std::vector<Int8Grid>{} : row_grids(input, rows);
  const auto features =
      static_cast<size_t>(std::max<int64_t>(input.numel() / std::max<int64_t>(rows, 1), 1));
  parallel_for(static_cast<int64_t>(into.size()), kFakeGrain, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      into[i] = step_of(from[i], grid ? *grid : grids[i / features]).value;
    }
  });
  return record<FakeQuantizeNode>(y, {x}, input, grid);
}

}  // namespace lacuna
