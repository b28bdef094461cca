// Plain stacks: layers put in order, norms put to them, and between them what has no parameters,
// which is guessed.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/interop/found_model.hpp"
#include "lacuna/framework/interop/stack_parts.hpp"

namespace lacuna {
namespace {

constexpr const char* kGuess = "   # guess";

// A layer with its norm. What stands behind it in a sequence without parameters is counted.
struct Step {
  StackPart layer;
  std::optional<StackPart> norm = {};
  bool is_norm_first = false;
  std::optional<int64_t> gaps = {};  // places without parameters, where names count places
};

bool is_convolution(const Step& step) { return step.layer.kind == StackPart::Kind::Convolution; }

// Whether `next` takes what `step` gives.
bool follows(const StackPart& layer, const StackPart& next) {
  const int64_t outputs = layer.outputs();
  if (layer.kind == next.kind && layer.kind == StackPart::Kind::Linear) {
    return next.inputs() == outputs;
  }
  if (layer.kind == next.kind) return outputs % next.inputs() == 0;  // of groups
  return layer.kind == StackPart::Kind::Convolution && next.inputs() % outputs == 0;
}

// Puts the layers in an order in which each takes what the one before gives: that of their names,
// or, where it does not, the first that does.
bool put_in_order(std::vector<StackPart>& layers) {
  constexpr int64_t kMostTries = 100000;
  std::stable_partition(layers.begin(), layers.end(),
                        [](const StackPart& p) { return p.kind == StackPart::Kind::Convolution; });
  int64_t tries = 0;
  const std::function<bool(size_t)> place = [&](size_t count) {
    if (count == layers.size()) return true;
    for (size_t i = count; i < layers.size(); ++i) {
      if (++tries > kMostTries) return false;
      if (count > 0 && !follows(layers[count - 1], layers[i])) continue;
      const auto begin = layers.begin() + static_cast<std::ptrdiff_t>(count);
      const auto chosen = layers.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(begin, chosen, std::next(chosen));
      if (place(count + 1)) return true;
      std::rotate(begin, std::next(begin), std::next(chosen));
    }
    return false;
  };
  return place(0);
}

// In one sequence with the norm: the step right before it or right behind it, else the last before
// it, or, if there is none, the first behind.
Step* neighbour_of(const StackPart& norm, std::vector<Step>& steps) {
  Step *before = nullptr, *behind = nullptr;
  const int64_t at = place_in_sequence(norm.name);
  for (Step& step : steps) {
    const int64_t place = place_in_sequence(step.layer.name);
    if (place < 0 || parent_of_layer(norm.name) != parent_of_layer(step.layer.name)) continue;
    if (place < at) before = &step;
    if (place > at && behind == nullptr) behind = &step;
  }
  const auto is_at = [](const Step* step, int64_t place) {
    return step != nullptr && place_in_sequence(step->layer.name) == place;
  };
  if (is_at(behind, at + 1) && !is_at(before, at - 1)) return behind;
  return before != nullptr ? before : behind;
}

// The step that a norm belongs to: its neighbour, where names count places, or that of the same
// numbers in its name.
Step* step_of(const StackPart& norm, std::vector<Step>& steps) {
  if (place_in_sequence(norm.name) >= 0) {
    if (Step* step = neighbour_of(norm, steps)) return step;
  }
  Step* found = nullptr;
  for (Step& step : steps) {
    if (numbers_in(norm.name) != numbers_in(step.layer.name)) continue;
    if (found != nullptr) return nullptr;  // of two one cannot tell
    found = &step;
  }
  return found;
}

std::string put_norms(const std::vector<StackPart>& norms, std::vector<Step>& steps) {
  for (const StackPart& norm : norms) {
    Step* step = step_of(norm, steps);
    const bool has_place = step != nullptr && !step->norm;
    if (has_place && norm.outputs() == step->layer.outputs()) {
      step->norm = norm;
    } else if (has_place && !is_convolution(*step) && norm.outputs() == step->layer.inputs()) {
      step->norm = norm;
      step->is_norm_first = true;
    } else {
      return fmt::format("it is not clear which layer the norm '{}' [{}] belongs to", norm.name,
                         norm.outputs());
    }
    if (is_convolution(*step) && norm.kind != StackPart::Kind::BatchNorm) {
      return fmt::format("'{}' may be a norm of groups, whose number the file does not tell",
                         norm.name);
    }
  }
  return "";
}

// Places between a step and the next one that have no parameters, where both count in one sequence.
void count_gaps(std::vector<Step>& steps) {
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const StackPart& last =
        steps[i].norm && !steps[i].is_norm_first ? *steps[i].norm : steps[i].layer;
    const StackPart& next = steps[i + 1].is_norm_first ? *steps[i + 1].norm : steps[i + 1].layer;
    const int64_t from = place_in_sequence(last.name), to = place_in_sequence(next.name);
    if (from < 0 || to <= from || parent_of_layer(last.name) != parent_of_layer(next.name))
      continue;
    steps[i].gaps = to - from - 1;
  }
}

// How images become features: what convolutions pad, which of them a pooling follows.
struct Spatial {
  int64_t image = 0;            // side
  std::vector<bool> is_padded;  // of each convolution: so that sides stay
  std::vector<bool> has_pool;   // of each convolution
  bool is_averaged = false;     // the mean of each channel at the end
};

int64_t side_after(const std::vector<Step>& convolutions, const Spatial& spatial) {
  int64_t side = spatial.image;
  for (size_t i = 0; i < convolutions.size() && side > 0; ++i) {
    const int64_t kernel = convolutions[i].layer.weight[2];
    side += (spatial.is_padded[i] ? 2 * (kernel / 2) : 0) - kernel + 1;
    if (spatial.has_pool[i]) side /= 2;
  }
  return side;
}

// Which convolutions a pooling may follow, likeliest first.
std::vector<std::vector<bool>> pool_plans(const std::vector<Step>& convolutions) {
  const size_t count = convolutions.size();
  std::vector<bool> by_gaps;
  for (const Step& step : convolutions) {
    if (step.gaps) by_gaps.push_back(*step.gaps >= 2);
  }
  if (by_gaps.size() == count) {  // the last gap holds the flattening too
    by_gaps.back() = convolutions.back().gaps >= 3;
    return {by_gaps};
  }
  std::vector<std::vector<bool>> plans;
  if (by_gaps.size() + 1 == count) {
    for (const bool last : {true, false}) {
      plans.push_back(by_gaps);
      plans.back().push_back(last);
    }
    return plans;
  }
  std::vector<bool> second(count), last(count);
  for (size_t i = 1; i < count; i += 2) second[i] = true;
  last.back() = true;
  return {std::vector<bool>(count, true), second, last, std::vector<bool>(count, false)};
}

// Which convolutions are padded, likeliest first; of many convolutions all or none.
std::vector<std::vector<bool>> padding_plans(size_t count) {
  constexpr size_t kMostMixed = 6;
  std::vector<std::vector<bool>> plans{std::vector<bool>(count, true),
                                       std::vector<bool>(count, false)};
  if (count > kMostMixed) return plans;
  for (uint64_t mix = 1; mix + 1 < uint64_t{1} << count; ++mix) {
    plans.emplace_back(count);
    for (size_t i = 0; i < count; ++i) plans.back()[i] = (mix >> i & 1) != 0;
  }
  return plans;
}

// Sizes of images, paddings and poolings that give the first linear layer its inputs; nothing where
// none of those tried does.
std::optional<Spatial> find_spatial(const std::vector<Step>& convolutions, int64_t features) {
  const int64_t channels = convolutions.back().layer.outputs();
  const bool is_grey = convolutions.front().layer.inputs() == 1;
  std::vector<int64_t> images{is_grey ? 28 : 32, is_grey ? 32 : 28};
  for (const int64_t side : {224, 64, 128, 96, 48, 16, 256, 299, 512}) images.push_back(side);
  std::optional<Spatial> averaged;
  for (const int64_t image : images) {
    for (const std::vector<bool>& plan : pool_plans(convolutions)) {
      for (const std::vector<bool>& padded : padding_plans(convolutions.size())) {
        Spatial spatial{.image = image, .is_padded = padded, .has_pool = plan};
        const int64_t side = side_after(convolutions, spatial);
        if (side > 0 && side * side * channels == features) return spatial;
        if (side < 1 || features != channels || averaged) continue;
        spatial.is_averaged = true;
        averaged = spatial;
      }
    }
  }
  return averaged;
}

std::string norm_line(const StackPart& norm) {
  const char* type = norm.kind == StackPart::Kind::BatchNorm   ? "batch_norm"
                     : norm.kind == StackPart::Kind::LayerNorm ? "layer_norm"
                                                               : "rms_norm";
  return fmt::format("    - {{type: {}, name: {}}}\n", type, Config(norm.name).to_json());
}

std::string layer_line(const Step& step, int64_t channels, bool is_padded) {
  const StackPart& layer = step.layer;
  const std::string name = Config(layer.name).to_json(),
                    bias = layer.has_bias ? "" : ", bias: false";
  if (layer.kind == StackPart::Kind::Linear) {
    return fmt::format("    - {{type: linear, name: {}, out_features: {}{}}}\n", name,
                       layer.outputs(), bias);
  }
  const int64_t rows = layer.weight[2], columns = layer.weight[3],
                groups = channels / layer.inputs();
  const std::string kernel =
      rows == columns ? fmt::format("{}", rows) : fmt::format("[{}, {}]", rows, columns);
  const std::string padding = !is_padded || (rows < 2 && columns < 2) ? ""
                              : rows == columns
                                  ? fmt::format(", padding: {}", rows / 2)
                                  : fmt::format(", padding: [{}, {}]", rows / 2, columns / 2);
  return fmt::format("    - {{type: conv2d, name: {}, out_channels: {}, kernel: {}{}{}{}}}{}\n",
                     name, layer.outputs(), kernel, padding,
                     groups > 1 ? fmt::format(", groups: {}", groups) : "", bias,
                     "   # stride and padding: guesses");
}

std::string layers_of(const std::vector<Step>& steps, size_t convolutions, const Spatial& spatial) {
  std::string text = "  layers:\n";
  if (convolutions == 0) text += "    - flatten\n";
  int64_t channels = convolutions > 0 ? steps.front().layer.inputs() : 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.norm && step.is_norm_first) text += norm_line(*step.norm);
    text += layer_line(step, channels, i < convolutions && spatial.is_padded[i]);
    channels = step.layer.outputs();
    if (step.norm && !step.is_norm_first) text += norm_line(*step.norm);
    const bool has_activation = !step.gaps || *step.gaps > 0;
    if (i + 1 < steps.size() && has_activation) text += fmt::format("    - relu{}\n", kGuess);
    if (i < convolutions && spatial.has_pool[i]) {
      text += fmt::format("    - {{type: max_pool, kernel: 2}}{}\n", kGuess);
    }
    if (i + 1 != convolutions) continue;
    text += spatial.is_averaged ? fmt::format("    - global_average_pool{}\n", kGuess)
                                : "    - flatten\n";
  }
  return text;
}

// Data of the shape that the first layer takes.
std::string data_of(const std::vector<Step>& steps, size_t convolutions, const Spatial& spatial) {
  const int64_t inputs = steps.front().layer.inputs();
  if (convolutions > 0) {
    return fmt::format(
        "  type: image_folder\n  dir: {}         # holds train/ with a folder for each class\n  "
        "size: "
        "{}{}\n  channels: {}\n",
        kFillIn, spatial.image, kGuess, inputs);
  }
  if (inputs == 784) return fmt::format("  type: mnist{}\n  dir: {}\n", kGuess, kFillIn);
  if (inputs == 3072) return fmt::format("  type: cifar10{}\n  dir: {}\n", kGuess, kFillIn);
  return fmt::format("  type: csv           # or hdf5: examples of {} features\n  train: {}\n",
                     inputs, kFillIn);
}

FoundStack stack_of(std::vector<StackPart> parts) {
  std::vector<StackPart> norms, layers;
  for (StackPart& part : parts) (part.is_norm() ? norms : layers).push_back(std::move(part));
  if (layers.empty()) return {.model = {}, .reason = "there is no linear layer or convolution"};
  if (!put_in_order(layers)) {
    return {.model = {}, .reason = "no order of its layers makes all outputs fit the next inputs"};
  }
  std::vector<Step> steps;
  for (const StackPart& layer : layers) steps.push_back({.layer = layer});
  if (std::string reason = put_norms(norms, steps); !reason.empty()) {
    return {.model = {}, .reason = std::move(reason)};
  }
  count_gaps(steps);
  const auto convolutions = static_cast<size_t>(std::ranges::count_if(steps, is_convolution));
  Spatial spatial;
  if (convolutions == steps.size()) {
    return {.model = {}, .reason = "it has convolutions and no linear layer after them"};
  }
  if (convolutions > 0) {
    const std::vector<Step> first(steps.begin(),
                                  steps.begin() + static_cast<std::ptrdiff_t>(convolutions));
    const int64_t features = steps[convolutions].layer.inputs();
    const auto found = find_spatial(first, features);
    if (!found) {
      return {.model = {},
              .reason = fmt::format("no common image size gives '{}' its {} inputs",
                                    steps[convolutions].layer.name, features)};
    }
    spatial = *found;
  }
  const int64_t outputs = steps.back().layer.outputs();
  FoundModel model{.what = plural(static_cast<int64_t>(steps.size()), "layer") + " with weights" +
                           (steps.size() == 1 ? "" : ", one after the other"),
                   .data = data_of(steps, convolutions, spatial),
                   .model = layers_of(steps, convolutions, spatial)};
  if (outputs == 1)
    model.loss = "loss: binary_cross_entropy   # or data.task: regression and loss: mse\n";
  return {.model = std::move(model)};
}

}  // namespace

FoundStack find_stack(const StoredValues& stored) {
  try {
    return stack_of(stack_parts(stored));
  } catch (const CheckpointError& error) {
    return {.model = {}, .reason = error.what()};
  }
}

std::vector<std::string> list_arrays(const StoredValues& stored, size_t most) {
  struct Group {
    std::string shown;
    Shape shape;
    int64_t times = 0;
  };
  std::vector<std::string> names;
  for (const auto& [name, item] : stored.items()) names.push_back(name);
  std::ranges::sort(names, is_before);
  std::vector<std::pair<std::string, Group>> groups;  // by the name without its numbers
  for (const std::string& name : names) {
    std::string key;
    for (const char c : name) key += c >= '0' && c <= '9' ? '#' : c;
    const Shape& shape = stored.items().at(name).shape;
    key += shape.to_string();
    const auto same = std::ranges::find(groups, key, [](const auto& g) { return g.first; });
    if (same == groups.end()) {
      groups.push_back({key, {.shown = name, .shape = shape, .times = 1}});
    } else {
      ++same->second.times;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, group] : groups) {
    if (lines.size() == most) {
      lines.push_back(fmt::format("and {} more", groups.size() - most));
      break;
    }
    lines.push_back(
        fmt::format("{} {}{}", group.shown, group.shape.to_string(),
                    group.times > 1 ? fmt::format(", and {} more like it", group.times - 1) : ""));
  }
  return lines;
}

}  // namespace lacuna
