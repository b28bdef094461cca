#include "lacuna/framework/autograd/classes/tiled_logits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"

namespace lacuna {
namespace {

ClassTileShape tile_shape(const Tensor& logits) {
  return {.examples = logits.shape().batch(), .classes = logits.shape().features()};
}

// The logits of a tile, in slabs: a tensor of its own.
Tensor logits_of(const ClassTile& tile, const Tensor& x) {
  const Layout& layout = tile.weight.pattern->layout();
  const Tensor bias = tile.bias.defined() ? tile.bias.value() : Tensor();
  return reordered(layout.forward(tile.weight.view(), x, bias), Order::BatchSlabs);
}

// Calls `visit(logits in slabs, first class)` tile by tile.
void for_each_tile(const Variable& logits,
                   const std::function<void(const Tensor& tile, int64_t first)>& visit) {
  const auto* tiled = dynamic_cast<const TiledLogits*>(logits.deferred_value().get());
  if (tiled == nullptr) return visit(reordered(logits.value(), Order::BatchSlabs), 0);
  const Tensor x = reordered(tiled->x().value(), Order::BatchSlabs);
  int64_t first = 0;
  for (const ClassTile& tile : tiled->tiles()) {
    visit(logits_of(tile, x), first);
    first += tile.weight.pattern->shape()[0];
  }
}

// The labels of a batch, by class.
struct SortedLabels {
  struct Label {
    int64_t of_class, example;
  };

  SortedLabels(const IndexTensor& lists, int64_t classes)
      : counts(static_cast<size_t>(lists.shape()[0])) {
    const int64_t most = lists.shape()[1];
    for (int64_t i = 0; i < lists.numel(); ++i) {
      const int64_t label = lists.values()[static_cast<size_t>(i)];
      if (label == kIgnoredLabel) continue;
      if (label < 0 || label >= classes) {
        throw DataError(fmt::format(
            "multi_label_cross_entropy: label {} of example {} is out of range: there are {} "
            "classes, counted from 0",
            label, i / most, classes));
      }
      labels.push_back({label, i / most});
      ++counts[static_cast<size_t>(i / most)];
    }
    std::ranges::stable_sort(labels, {}, &Label::of_class);
    for (const int64_t count : counts) examples += count > 0 ? 1 : 0;
  }

  // Calls `visit(example, place of its logit in a tile)` for the labels in the tile's classes.
  template <class Visit>
  void for_each_in(int64_t first, int64_t classes, const Visit& visit) const {
    auto label = std::ranges::lower_bound(labels, first, {}, &Label::of_class);
    for (; label != labels.end() && label->of_class < first + classes; ++label) {
      const int64_t slab = label->example / kSlabWidth;
      visit(static_cast<size_t>(label->example),
            static_cast<size_t>((slab * classes + label->of_class - first) * kSlabWidth +
                                label->example % kSlabWidth));
    }
  }

  std::vector<Label> labels;
  std::vector<int64_t> counts;  // of each example
  int64_t examples = 0;         // that have a label
};

// What the gradient of each tile needs to know of all of them.
struct Softmax {
  std::vector<ExponentialSum> sums;  // of each example
  SortedLabels labels;

  // The tile's logits become factor · (softmax − target).
  void to_gradient(Tensor& logits, int64_t first, double factor) const {
    const ClassTileShape shape = tile_shape(logits);
    std::vector<float> largest(sums.size()), factors(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      largest[i] = sums[i].largest;
      factors[i] = labels.counts[i] == 0 ? 0.0f : static_cast<float>(factor / sums[i].sum);
    }
    float* const dx = logits.mutable_data(Order::BatchSlabs);
    scaled_exponentials(shape, largest, factors, dx);
    labels.for_each_in(first, shape.classes, [&](size_t example, size_t place) {
      dx[place] -= static_cast<float>(factor / static_cast<double>(labels.counts[example]));
    });
  }

  double factor_of(const Tensor& dy) const {
    if (labels.examples == 0) return 0.0;
    return static_cast<double>(dy.item()) / static_cast<double>(labels.examples);
  }
};

// The inputs are x, and for each tile its bias and an anchor that represents its weight, which
// receives its gradient itself, as in linear().
struct TiledCrossEntropyNode final : Node {
  TiledCrossEntropyNode(Tensor x_, std::vector<ClassTile> tiles_, Softmax softmax_)
      : x(std::move(x_)), tiles(std::move(tiles_)), softmax(std::move(softmax_)) {}
  std::string_view name() const override { return "tiled_cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    std::vector<Tensor> gradients(inputs().size());
    int64_t first = 0;
    for (size_t t = 0; t < tiles.size(); ++t) {
      const WeightReference& weight = tiles[t].weight;
      weight.require_unchanged();
      Tensor dz = logits_of(tiles[t], x);  // dZ = dy / n (softmax(Z) − target)   [batch, classes]
      softmax.to_gradient(dz, first, softmax.factor_of(dy));
      if (needs(0)) {  // dX = Σ dZ W over the tiles   [batch, features]
        add_gradient(gradients[0], weight.pattern->layout().input_gradient(weight.view(), dz));
      }
      const size_t bias = 1 + 2 * t;
      if (weight.sink != nullptr) {  // dW = dZᵀ X   [classes, features]
        const BatchSums sums(needs(bias) ? dz : Tensor(), dz.shape().features());
        weight.sink->accumulate_product(dz, x);
        gradients[bias] = sums.made();
      }
      if (needs(bias) && !gradients[bias].defined()) gradients[bias] = sum_rows(dz);  // [classes]
      first += weight.pattern->shape()[0];
    }
    return gradients;
  }

  Tensor x;
  std::vector<ClassTile> tiles;
  Softmax softmax;
};

struct MultiLabelNode final : Node {
  MultiLabelNode(Tensor logits_, Softmax softmax_)
      : logits(std::move(logits_)), softmax(std::move(softmax_)) {}
  std::string_view name() const override { return "multi_label_cross_entropy"; }
  std::vector<Tensor*> saved() override { return {&logits}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    Tensor dx = logits.clone();
    softmax.to_gradient(dx, 0, softmax.factor_of(dy));
    return {dx};  // dx = dy / n (softmax(logits) − target)   [batch, classes]
  }

  Tensor logits;
  Softmax softmax;
};

}  // namespace

Variable TiledLogits::compute() {
  std::vector<Variable> all;
  for (const ClassTile& tile : tiles_) all.push_back(linear(x_, tile.weight, tile.bias));
  return concatenate(all, -1);
}

Variable tiled_logits(const Variable& x, std::vector<ClassTile> tiles) {
  int64_t classes = 0;
  for (const ClassTile& tile : tiles) {
    const Shape& weight = tile.weight.pattern->shape();
    if (x.shape().rank() != 2 || x.shape()[1] != weight[1]) {
      throw ShapeError(
          fmt::format("tiled_logits '{}': a weight of shape {} needs inputs [batch, {}], found {}",
                      tile.weight.name, weight.to_string(), weight[1], x.shape().to_string()));
    }
    classes += weight[0];
  }
  const Shape shape{x.shape()[0], classes};
  return Variable::deferred(shape, std::make_shared<TiledLogits>(x, std::move(tiles)));
}

Variable multi_label_cross_entropy(const Variable& logits, const IndexTensor& labels) {
  const Shape& shape = logits.shape();
  if (shape.rank() != 2 || labels.shape().rank() != 2 || labels.shape()[0] != shape[0]) {
    throw ShapeError(fmt::format(
        "multi_label_cross_entropy: logits [batch, classes] need labels [batch, most], found {} "
        "and {}",
        shape.to_string(), labels.shape().to_string()));
  }
  Softmax softmax{.sums = std::vector<ExponentialSum>(static_cast<size_t>(shape[0])),
                  .labels = SortedLabels(labels, shape[1])};
  double total = 0.0;  // of −Σ logits of labels / n
  for_each_tile(logits, [&](const Tensor& tile, int64_t first) {
    const float* const x = tile.data(Order::BatchSlabs);
    add_exponentials(tile_shape(tile), x, softmax.sums);
    softmax.labels.for_each_in(first, tile.shape()[1], [&](size_t example, size_t place) {
      total -= static_cast<double>(x[place]) / static_cast<double>(softmax.labels.counts[example]);
    });
  });
  for (size_t i = 0; i < softmax.sums.size(); ++i) {
    if (softmax.labels.counts[i] == 0) continue;
    total += static_cast<double>(softmax.sums[i].largest) + std::log(softmax.sums[i].sum);
  }
  if (softmax.labels.examples > 0) total /= static_cast<double>(softmax.labels.examples);
  Tensor loss = Tensor::scalar(static_cast<float>(total));
  const auto* tiled = dynamic_cast<const TiledLogits*>(logits.deferred_value().get());
  if (tiled == nullptr) {
    return record<MultiLabelNode>(std::move(loss), {logits},
                                  reordered(logits.value(), Order::BatchSlabs), std::move(softmax));
  }
  std::vector<Variable> inputs{tiled->x()};
  for (const ClassTile& tile : tiled->tiles()) {
    inputs.push_back(tile.bias);
    inputs.push_back(tile.weight.sink != nullptr ? Variable::leaf(Tensor()) : Variable());
  }
  return record<TiledCrossEntropyNode>(std::move(loss), std::move(inputs),
                                       reordered(tiled->x().value(), Order::BatchSlabs),
                                       tiled->tiles(), std::move(softmax));
}

LargestLogits largest_logits(const Variable& logits, int64_t count) {
  LargestLogits largest(logits.shape()[0], count);
  for_each_tile(logits, [&](const Tensor& tile, int64_t first) {
    take_largest(tile_shape(tile), tile.data(Order::BatchSlabs), first, largest);
  });
  return largest;
}

}  // namespace lacuna
