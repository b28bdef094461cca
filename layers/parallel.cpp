#include "lacuna/layers/parallel.h"

#include <fmt/core.h>

#include <limits>

#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sharded_batch.h"

namespace lacuna {
namespace {

// For the shape of an example: the channels of an image, else the features.
int joined_dimension(const Shape& example) { return example.rank() == 3 ? 0 : example.rank() - 1; }

}  // namespace

Module& Parallel::add(std::string name, std::unique_ptr<Module> child) {
  Module& module = register_module(std::move(name), std::move(child));
  branches_.push_back(&module);
  return module;
}

std::optional<Shape> Parallel::side_by_side(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() < 1) return std::nullopt;
  std::vector<int64_t> sizes(a.sizes().begin(), a.sizes().end());
  for (int i = 0; i < a.rank(); ++i) {
    if (i == joined_dimension(a)) {
      if (a[i] > std::numeric_limits<int64_t>::max() - b[i]) {
        throw ShapeError(fmt::format("{} and {} side by side are too large for 64-bit indices",
                                     a.to_string(), b.to_string()));
      }
      sizes[static_cast<size_t>(i)] += b[i];
    } else if (a[i] != b[i]) {
      return std::nullopt;
    }
  }
  return Shape(sizes);
}

Shape Parallel::output_shape(const Shape& input) const {
  if (branches_.empty()) {
    throw ShapeError(fmt::format("layer '{}' (parallel) has no branches", path()));
  }
  Shape shape = branches_.front()->output_shape(input);
  for (size_t i = 1; i < branches_.size(); ++i) {
    const Shape next = branches_[i]->output_shape(input);
    const std::optional<Shape> joined = side_by_side(shape, next);
    if (!joined) {
      throw ShapeError(
          fmt::format("layer '{}' (parallel): '{}' gives shape {}, which cannot be concatenated "
                      "with {} of the branches before it",
                      path(), branches_[i]->path(), next.to_string(), shape.to_string()));
    }
    shape = *joined;
  }
  return shape;
}

std::optional<std::vector<Shape>> Parallel::child_inputs(const Shape& input) const {
  return std::vector<Shape>(branches_.size(), input);
}

namespace {

Variable side_by_side_of(const std::vector<Variable>& outputs) {
  const bool is_image = !outputs.empty() && outputs.front().shape().rank() == 4;
  return concatenate(outputs, is_image ? 1 : -1);
}

}  // namespace

Variable Parallel::forward(const Variable& input) {
  std::vector<Variable> outputs;
  for (Module* branch : branches_) outputs.push_back((*branch)(input));
  return side_by_side_of(outputs);
}

std::vector<Variable> Parallel::forward_in_shards(std::span<const Variable> inputs) {
  std::vector<std::vector<Variable>> of_branches;
  for (Module* branch : branches_) of_branches.push_back(branch->forward_shards(inputs));
  std::vector<Variable> joined(inputs.size());
  for_each_shard([&](size_t i) {
    std::vector<Variable> outputs;
    for (const std::vector<Variable>& branch : of_branches) outputs.push_back(branch[i]);
    joined[i] = side_by_side_of(outputs);
  });
  return joined;
}

}  // namespace lacuna
