#include "lacuna/framework/inference/example_pieces.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/row_by_row.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/nn/tiled_output.h"

namespace lacuna {
namespace {

// The values that an example's tensor takes in memory: images of many channels [channels, height,
// width] may be stored in whole blocks of channels.
double stored_values(const Shape& shape) {
  double product = 1.0;
  for (const int64_t size : shape.sizes()) product *= static_cast<double>(size);
  if (shape.rank() != 3 || shape[0] < kChannelBlock) return product;
  const int64_t blocks = (shape[0] + kChannelBlock - 1) / kChannelBlock;
  return product / static_cast<double>(shape[0]) * static_cast<double>(blocks * kChannelBlock);
}

// The values of a module's output that are there at once: of one in tiles the largest tile.
double output_values(const Module& module, const Shape& input) {
  const double all = stored_values(module.output_shape(input));
  const Module* last = &module;
  for (const auto* chain = dynamic_cast<const Sequential*>(last);
       chain != nullptr && !chain->chain().empty(); chain = dynamic_cast<const Sequential*>(last)) {
    last = chain->chain().modules().back();
  }
  const auto* tiled = dynamic_cast<const TiledOutput*>(last);
  if (tiled == nullptr) return all;
  double most = 0.0;
  for (const ParameterPtr& weight : tiled->tile_weights()) {
    most = std::max(most, static_cast<double>(weight->shape()[0]));
  }
  return most;
}

// The values of an example: few of one whose features are named, next to what layers give.
double input_values(const Module& model, const Shape& example) {
  const auto children = model.children();
  const auto* user =
      children.empty() ? nullptr : dynamic_cast<const NamedInputUser*>(children.front().second);
  return user != nullptr && user->requested_input().name == kFeatureIds ? 0.0
                                                                        : stored_values(example);
}

// What is held next to a container's input while its first `count` children run. The first is given
// that input itself; the input of every other one is held while it runs.
double held_in_children(const Module& module, const std::vector<Shape>& inputs, size_t count);

// What is held in a module's forward pass next to its input.
double held_beside_input(const Module& module, const Shape& input) {
  const double output = output_values(module, input);
  const std::optional<std::vector<Shape>> inputs = module.child_inputs(input);
  if (!inputs || dynamic_cast<const TiledOutput*>(&module) != nullptr) return output;
  const double inside = std::max(output, held_in_children(module, *inputs, inputs->size()));
  // Outputs of the other branches are held too, and finally their combined output.
  return module.joins_branches() ? std::max(inside + output, 2.0 * output) : inside;
}

double held_in_children(const Module& module, const std::vector<Shape>& inputs, size_t count) {
  double most = 0.0;
  const auto children = module.children();
  for (size_t i = 0; i < std::min(count, children.size()); ++i) {
    const double given = i == 0 ? 0.0 : stored_values(inputs[i]);
    most = std::max(most, given + held_beside_input(*children[i].second, inputs[i]));
  }
  return most;
}

bool has_transforms(const Module& module) {
  return module.has_input_transforms() || module.has_output_transforms();
}

double float_bytes(double values) { return values * static_cast<double>(sizeof(float)); }

// How many of a size the bytes of a piece hold; at least one.
int64_t count_of(double bytes, int64_t most) {
  const double count = kPieceBytes / std::max(bytes, 1.0);
  return count >= static_cast<double>(most) ? most
                                            : std::max(static_cast<int64_t>(count), int64_t{1});
}

// The layers before the last one take as many examples as fit, and the last one rows of these.
ExamplePieces in_rows(const Module& model, const Shape& example, int64_t batch_size) {
  const std::vector<Shape> inputs = *model.child_inputs(example);
  const Shape output = model.output_shape(example);
  const double before =
      float_bytes(stored_values(example) + held_in_children(model, inputs, inputs.size() - 1));
  const double row = float_bytes(static_cast<double>(inputs.back().features()) +
                                 static_cast<double>(output.features()));
  const int64_t examples = count_of(before, batch_size);
  const auto all = static_cast<double>(examples) * static_cast<double>(output.batch());
  const int64_t rows = count_of(row, static_cast<int64_t>(all));
  return {.examples = examples,
          .rows = rows,
          .bytes = static_cast<double>(examples) * before + static_cast<double>(rows) * row};
}

}  // namespace

bool sparsifies_activations(Module& model) {
  return std::ranges::any_of(model.modules(), [](const Module* m) { return has_transforms(*m); });
}

bool mixes_examples(Module& model) {
  const auto goes_by_batch = [](const Module* module) {
    const auto* user = dynamic_cast<const BatchUser*>(module);
    return user != nullptr && user->mixes_examples();
  };
  return sparsifies_activations(model) || std::ranges::any_of(model.modules(), goes_by_batch);
}

Module* last_row_layer(Module& model) {
  const auto* chain = dynamic_cast<const Sequential*>(&model);
  if (chain == nullptr || chain->chain().empty() || has_transforms(model)) return nullptr;
  Module* last = chain->chain().modules().back();
  return dynamic_cast<const RowByRow*>(last) != nullptr && !has_transforms(*last) ? last : nullptr;
}

double held_values(const Module& model, const Shape& example) {
  return input_values(model, example) + held_beside_input(model, example);
}

ExamplePieces example_pieces(Module& model, const Shape& example, int64_t batch_size) {
  constexpr int64_t kImages = 16;
  const double bytes = float_bytes(held_values(model, example));
  if (mixes_examples(model)) {
    return {.examples = batch_size, .bytes = bytes * static_cast<double>(batch_size)};
  }
  const Module* last = last_row_layer(model);
  if (bytes > kPieceBytes && last != nullptr && model.output_shape(example).rank() > 1) {
    return in_rows(model, example, batch_size);
  }
  const int64_t least = example.rank() > 1 ? std::min(kImages, batch_size) : 1;
  const int64_t examples = std::max(count_of(bytes, batch_size), least);
  return {.examples = examples, .bytes = bytes * static_cast<double>(examples)};
}

}  // namespace lacuna
