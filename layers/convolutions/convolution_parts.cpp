#include "lacuna/layers/convolutions/convolution_parts.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                       int64_t groups) {
  if (groups >= 1 && in_channels % groups == 0 && out_channels % groups == 0) return;
  throw ConfigError(fmt::format(
      "{}: groups must divide the channels, found {} groups of {} input and {} output channels",
      layer, groups, in_channels, out_channels));
}

int64_t read_groups(const Config& options, const Shape& input, int64_t out_channels) {
  const auto groups = require_at_least(options, "groups", options.get<int64_t>("groups", 1), 1);
  if (input[0] % groups != 0 || out_channels % groups != 0) {
    options.at("groups").error(
        fmt::format("{} groups do not divide the channels: {} come in, in shape {}, and {} go out",
                    groups, input[0], input.to_string(), out_channels));
  }
  return groups;
}

std::vector<int64_t> sizes(Extent extent, const Shape& example) {
  return example.rank() == 2 ? std::vector<int64_t>{extent.width}
                             : std::vector<int64_t>{extent.height, extent.width};
}

std::vector<int64_t> both_ends(Extent padding, const Shape& example) {
  std::vector<int64_t> pads = sizes(padding, example);
  pads.insert(pads.end(), pads.begin(), pads.end());
  return pads;
}

std::string write_convolution(OnnxGraph& graph, const AffineLayer& layer, int64_t groups,
                              const std::string& x, OnnxGraph::Attributes attributes) {
  OnnxGraph::Names inputs{x, graph.parameter(*layer.weight())};
  if (layer.bias() != nullptr) inputs.push_back(graph.parameter(*layer.bias()));
  attributes.push_back({"group", groups});
  return graph.add("Conv", inputs, std::move(attributes));
}

}  // namespace lacuna
