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
        fmt::format("{} groups do not divide the channels: {} in (shape {}), {} out", groups,
                    input[0], input.to_string(), out_channels));
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

UnitAxis units_of_convolution(UnitGraph& graph, const AffineLayer& layer, int64_t groups,
                              const UnitAxis& input, const Shape& example) {
  const UnitGraph::Units in = graph.along(layer, input, example, 0);
  const int64_t channels = example[0], size = layer.weight()->shape()[0];
  const UnitGraph::Units out = graph.make(layer, size);
  if (groups == 1) {
    graph.takes(layer.weight(), 1, in);
  } else if (groups == channels) {
    UnitGraph::Units sources;
    for (int64_t i = 0; i < size; ++i) {
      sources.push_back(in[static_cast<size_t>(i / (size / channels))]);
    }
    graph.unite(sources, out);
    graph.sets(layer, "groups", in);
  } else {
    const std::string why = unit_reason(layer, "needs as many channels in each of its groups");
    graph.fix(in, why);
    graph.fix(out, why);
  }
  graph.gives(layer.weight(), 0, out);
  graph.gives(layer.bias(), 0, out);
  graph.counts(layer, "in_channels", in);
  graph.sets(layer, "out_channels", out);
  return {0, out};
}

}  // namespace lacuna
