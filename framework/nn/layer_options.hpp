// What layers are registered with, and options that several of them read alike: sizes that are the
// input's where they are left out.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

using LayerPtr = std::unique_ptr<Module>;

/// A layer without options.
template <class Layer>
LayerPtr make_plain(const Config&, const Shape&) {
  return std::make_unique<Layer>();
}

/// The layer; what is wrong with its options is reported at their place.
template <class Layer>
LayerPtr make_at(const Config& options, const typename Layer::Options& layer) {
  return at_position(options, [&]() -> LayerPtr { return std::make_unique<Layer>(layer); });
}

/// The size of the last dimension: given under `key`, or else that of the input. *Errors:*
/// ShapeError where the two differ.
int64_t read_features(const Config& options, const char* key, const Shape& input);

/// A number for both sides, or [height, width], each of at least `least`. *Errors:* ConfigError.
Extent read_extent(const Config& options, const char* key, Extent otherwise, int64_t least);

/// A size along a sequence. *Errors:* ConfigError.
int64_t read_length(const Config& options, const char* key, int64_t otherwise, int64_t least);

/// What a layer takes.
struct ExampleKind {
  int rank;
  const char* shape;
};
inline constexpr ExampleKind kImages{3, "[channels, height, width]"};
inline constexpr ExampleKind kSequences{2, "[channels, length]"};

/// *Errors:* ShapeError where the input is of another kind.
void require_kind(const Shape& input, const ExampleKind& kind);

/// The number of channels of such examples: given under `key`, or the input's. *Errors:* ShapeError
/// where the two differ, or the input is of another kind.
int64_t read_channels(const Config& options, const char* key, const Shape& input,
                      const ExampleKind& kind = kImages);

/// A required number of at least 1. *Errors:* ConfigError.
int64_t required_size(const Config& options, const char* key);

/// *Errors:* ShapeError unless the input has a first dimension.
void require_channels(const Shape& input);

/// How an embedding is drawn: under `init`, whose default is written into the tree as it would be
/// in a file.
WeightDraw read_embedding_init(const Config& options, const WeightDraw& otherwise);

/// The heads of an attention.
struct Heads {
  int64_t of_queries, of_keys;
};
/// `heads`, and `kv_heads`, as many where they are left out. *Errors:* ConfigError.
Heads read_heads(const Config& options);

/// What a norm adds to a variance, or to a mean square. *Errors:* ConfigError unless it is above 0
/// and at most 1e30.
double read_eps(const Config& options, double otherwise = 1e-5);

}  // namespace lacuna
