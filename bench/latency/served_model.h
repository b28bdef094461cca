// The models that the latency benchmark asks for answers, their weights in one layout or in int8.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna::bench {

/// A model, and what it is given.
struct ServedNetwork {
  std::string name;
  std::string title;
  std::string layers;        ///< the `model` section of a configuration
  Shape example;             ///< [features], [tokens, features] or [channels, height, width]
  bool keeps_first = false;  ///< the first weight stays dense and float32
  bool keeps_last = false;   ///< and the last one
  int64_t attention_heads = 0;
  double tolerance = 0.05;  ///< of int8, relative to float32 by their norms

  /// Tokens of an example, which linear layers see as so many rows.
  int64_t tokens() const { return example.rank() == 2 ? example[0] : 1; }
  /// Drawn values of so many examples.
  Tensor draw(int64_t examples, const std::string& what) const;
};

/// "mlp", "resnet20", "bert_block". *Errors:* ConfigError on another name.
ServedNetwork find_served(const std::string& name, bool is_tiny);
const std::vector<std::string>& served_names();

/// How the weights are stored that neither stay dense nor float32.
struct ServedStorage {
  std::string layout = "dense";
  double sparsity = 0.0;
  bool in_groups = false;  ///< of 1 × 4
  bool in_int8 = false;
};

/// A model in evaluation mode, batch normalizations folded; first values and masks by seed 0, the
/// values scaled so that what they are given comes out as large, whatever the sparsity. In int8 it
/// is as `lacuna quantize` makes it with `algorithm: nearest`, on drawn examples.
class ServedModel {
 public:
  ServedModel(const ServedNetwork& network, int64_t examples, const ServedStorage& storage);

  Tensor run(const Tensor& x) const;
  const Module& model() const { return *model_; }

 private:
  void quantize(const ServedNetwork& network, const std::vector<std::string>& weights);

  std::unique_ptr<Sequential> model_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;  // null where dense
};

}  // namespace lacuna::bench
