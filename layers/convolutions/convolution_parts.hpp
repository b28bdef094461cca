// Shared by layers of images and sequences: groups of channels, and windows in ONNX.
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

/// *Errors:* ConfigError that names the layer if groups do not divide the channels.
void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                       int64_t groups);

/// The key `groups`. *Errors:* ConfigError if they do not divide the channels.
int64_t read_groups(const Config& options, const Shape& input, int64_t out_channels);

/// The part of an extent that applies to examples of this rank: sequences are images of height 1.
std::vector<int64_t> sizes(Extent extent, const Shape& example);
/// The same padding at the beginning and end of each dimension.
std::vector<int64_t> both_ends(Extent padding, const Shape& example);

/// Writes a convolution with these attributes, and `group`.
std::string write_convolution(OnnxGraph& graph, const AffineLayer& layer, int64_t groups,
                              const std::string& x, OnnxGraph::Attributes attributes);

/// Follows channels through a convolution: those of a depthwise one are removed with the channel
/// that they are computed from, those of other groups cannot be removed.
UnitAxis units_of_convolution(UnitGraph& graph, const AffineLayer& layer, int64_t groups,
                              const UnitAxis& input, const Shape& example);

}  // namespace lacuna
