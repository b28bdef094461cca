#include "lacuna/framework/nn/layer_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr int64_t kMostOfASide = 1 << 20;

// As Keras and PyTorch have it.
void refuse_padding_in_words(const Config& node, std::string_view key) {
  if (key != "padding" || !node.is_scalar()) return;
  if (node.text() == "same") {
    node.fail("a number: (kernel - 1) / 2 keeps the size at stride 1");
  }
  if (node.text() == "valid") node.fail("a number: 0");
}

}  // namespace

int64_t read_features(const Config& options, const char* key, const Shape& input) {
  if (input.rank() < 1) {
    throw ShapeError("this layer needs examples of shape [..., features], its input has shape " +
                     input.to_string());
  }
  const auto features = options.get<int64_t>(key, input.features());
  if (features != input.features()) {
    throw ShapeError(fmt::format("{} is {}, but the examples that reach this layer have shape {}",
                                 key, features, input.to_string()));
  }
  return features;
}

Extent read_extent(const Config& options, const char* key, Extent otherwise, int64_t least) {
  const Config node = options.get(key);
  refuse_padding_in_words(node, key);
  if (node.is_null()) {
    const bool is_square = otherwise.height == otherwise.width;
    if (is_square) return {options.get<int64_t>(key, otherwise.height), otherwise.width};
    return otherwise;
  }
  Extent extent;
  if (node.is_list()) {
    const auto sides = node.as<std::vector<int64_t>>();
    if (sides.size() != 2) node.fail("a number, or [height, width]");
    extent = {sides[0], sides[1]};
  } else {
    const auto side = node.as<int64_t>();
    extent = {side, side};
  }
  if (std::min(extent.height, extent.width) < least ||
      std::max(extent.height, extent.width) > kMostOfASide) {
    const std::string expected = fmt::format("numbers from {} to {}", least, kMostOfASide);
    if (!node.is_list()) node.fail(expected);
    node.error(fmt::format("expected {}, found {}", expected, node.to_json()));
  }
  return extent;
}

int64_t read_length(const Config& options, const char* key, int64_t otherwise, int64_t least) {
  refuse_padding_in_words(options.get(key), key);
  const auto length = options.get<int64_t>(key, otherwise);
  if (length < least || length > kMostOfASide) {
    options.at(key).fail(fmt::format("a number from {} to {}", least, kMostOfASide));
  }
  return length;
}

void require_kind(const Shape& input, const ExampleKind& kind) {
  if (input.rank() == kind.rank) return;
  const char* hint =
      kind.rank == 3 && input.rank() == 2
          ? " (if these are grey images, data.add_channel: true gives them a channel)"
          : "";
  throw ShapeError(fmt::format("this layer needs examples of shape {}, its input has shape {}{}",
                               kind.shape, input.to_string(), hint));
}

double read_eps(const Config& options, double otherwise) {
  const double eps = options.get("eps", otherwise);
  if (!(eps > 0.0)) options.at("eps").fail("a number above 0");
  if (eps > 1e30) options.at("eps").fail("a number of at most 1e30");
  return eps;
}

int64_t read_channels(const Config& options, const char* key, const Shape& input,
                      const ExampleKind& kind) {
  require_kind(input, kind);
  const auto channels = options.get<int64_t>(key, input[0]);
  if (channels != input[0]) {
    throw ShapeError(fmt::format("{} is {}, but the examples that reach this layer have shape {}",
                                 key, channels, input.to_string()));
  }
  return channels;
}

int64_t required_size(const Config& options, const char* key) {
  return require_at_least(options, key, options.required<int64_t>(key), 1);
}

void require_channels(const Shape& input) {
  if (input.rank() >= 1) return;
  throw ShapeError("this layer needs examples of shape [channels, ...], its input has shape " +
                   input.to_string());
}

WeightDraw read_embedding_init(const Config& options, const WeightDraw& otherwise) {
  if (!options.has("init")) {
    Config tree = options;
    tree.set("init", otherwise.type == WeightInit::Zeros
                         ? Config("zeros")
                         : Config::map({{"type", "normal"}, {"std", otherwise.std}}));
  }
  return read_weight_init(options, "init");
}

Heads read_heads(const Config& options) {
  const int64_t heads = required_size(options, "heads");
  const auto kv_heads = options.get<int64_t>("kv_heads", heads);
  require_at_least(options, "kv_heads", kv_heads, 1);
  if (heads % kv_heads != 0) {
    options.at("kv_heads").fail("a divisor of heads, which is " + std::to_string(heads));
  }
  return {heads, kv_heads};
}

}  // namespace lacuna
