// The networks that the model benchmark trains.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/nn/sequential.h"

namespace lacuna::bench {

/// A network as a user of lacuna writes it.
struct Network {
  std::string name;
  std::string title;
  std::string model;  ///< the `model` section of a configuration
  int64_t size = 32;  ///< of the images, which have 3 channels
  int64_t batch = 128;
  int64_t classes = 10;
  std::string stays_dense = {};  ///< weights with this in their name do; empty: none but the first

  /// Convolutions that run dense are computed by their faster algorithms, which are measured here.
  std::unique_ptr<Sequential> build() const;
};

/// "resnet20", "resnet18", "wrn16_2". *Errors:* ConfigError on another name.
Network find_network(const std::string& name);

/// The weights of all convolutions, the first in front.
std::vector<ParameterPtr> convolution_weights(const Module& model);
/// Those that may be sparse.
std::vector<ParameterPtr> sparse_weights(const Module& model, const Network& network);

}  // namespace lacuna::bench
