// What layers of images and sequences share: groups of channels, and how ONNX writes windows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/onnx_graph.h"
#include "lacuna/framework/nn/unit_graph.h"

namespace lacuna {

/// *Errors:* ConfigError that names the layer where groups do not divide the channels.
void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                       int64_t groups);

/// The key `groups`. *Errors:* ConfigError where they do not divide the channels.
int64_t read_groups(const Config& options, const Shape& input, int64_t out_channels);

/// The part of an extent that examples of this rank have: sequences are images of height 1.
std::vector<int64_t> sizes(Extent extent, const Shape& example);
/// The same padding at the beginning and the end of each dimension.
std::vector<int64_t> both_ends(Extent padding, const Shape& example);

/// Writes a convolution with these attributes, and `group`.
std::string write_convolution(OnnxGraph& graph, const AffineLayer& layer, int64_t groups,
                              const std::string& x, OnnxGraph::Attributes attributes);

/// Follows channels through a convolution: those of a depthwise one go with the channel that they
/// are made of, those of other groups stay.
UnitAxis units_of_convolution(UnitGraph& graph, const AffineLayer& layer, int64_t groups,
                              const UnitAxis& input, const Shape& example);

}  // namespace lacuna
