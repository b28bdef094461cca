// Weights of convolutions for the tests of layouts, and a layout that has no products of its own.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

// A user's layout: elements as they come, no products of its own.
class ListLayout final : public DenseFallbackLayout {
 public:
  struct List final : PatternIndex {
    explicit List(Positions p) : positions(std::move(p)) {}
    int64_t bytes() const override { return positions.count() * 4; }
    const Positions positions;
  };
  std::string_view name() const override { return "list of convolutions"; }
  std::shared_ptr<const PatternIndex> make_index(const Shape&, const Positions& p) const override {
    return std::make_shared<const List>(p);
  }
  Positions positions(const Pattern& pattern) const override {
    return pattern.index_as<List>().positions;
  }
  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }
  // Backwards, so that no layout's elements may be taken for another's.
  void compact(const Pattern&, std::span<const float> stored,
               std::span<float> elements) const override {
    std::ranges::copy(stored.rbegin(), stored.rend(), elements.begin());
  }
  void expand(const Pattern&, std::span<const float> elements,
              std::span<float> stored) const override {
    std::ranges::copy(elements.rbegin(), elements.rend(), stored.begin());
  }
};

inline const Layout& list_layout() {
  static const ListLayout layout;
  return layout;
}

// About `density` of the positions, the second row (output channel) empty.
inline Positions draw(const Shape& shape, double density) {
  const CounterRng rng(11, "positions");
  std::vector<int64_t> flat;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const bool is_second = i / (shape.numel() / shape[0]) == 1;
    if (!is_second && rng.uniform(static_cast<uint64_t>(i)) < density) flat.push_back(i);
  }
  return Positions::of(shape, flat);
}

inline std::vector<Shape> weight_shapes() {
  return {{4, 3, 3, 3},   {5, 7, 1, 1}, {3, 2, 1, 5}, {1, 1, 1, 1},
          {16, 16, 3, 3}, {2, 0, 3, 3}, {6, 1, 3, 3}};
}

}  // namespace lacuna
