// The parameters of convolution layers: what Conv1d and Conv2d share.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// How they are drawn, as in the layers' options.
struct ConvolutionDraw {
  bool bias = true;
  WeightDraw init = WeightInit::Default;
  FanIn init_fan_in = FanIn::all();
};

struct ConvolutionParameters {
  ParameterPtr weight;
  ParameterPtr bias;  ///< null where there is none
};

/// For a weight of `shape` [out, in / groups, kernel…]. *Requires* sizes of at least 1.
ConvolutionParameters make_convolution_parameters(const Shape& shape, const ConvolutionDraw& draw);

/// *Errors:* ConfigError that names the layer where groups do not divide the channels.
void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                       int64_t groups);

}  // namespace lacuna
