// The TokenEmbedding layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

/// A vector for each token: the rows of `weight` given by its ids. The input is a `token_ids`
/// (autograd/tokens/token_ids.h). *Shapes:* ids [batch, T] → [batch, T, features]; parameter
/// `weight` [vocab_size, features].
class TokenEmbedding final : public Module, public NamedInputUser {
 public:
  struct Options {
    int64_t vocab_size = 0;
    int64_t features = 0;
    int64_t padding_id = -1;  ///< its row gets no gradient; −1: none
    /// Default: normal with standard deviation 1, as in PyTorch's Embedding. Only Normal,
    /// TruncatedNormal and Zeros are valid.
    WeightDraw init = {WeightInit::Normal, 1.0};
    /// Whether the cost of a step depends only on the tokens of its batch, not on the vocabulary
    /// (Parameter::sparse_gradient), like `sparse=True` of PyTorch's Embedding.
    bool sparse_gradient = false;
  };

  /// *Errors:* ConfigError unless both sizes are at least 1 and the padding's id is in the
  /// vocabulary, and on an init that depends on a fan-in.
  explicit TokenEmbedding(const Options& options);

  std::string_view type() const override { return "token_embedding"; }
  RequestedInput requested_input() const override {
    return {.name = kInputIds,
            .usual = kInputIds,
            .below = options_.vocab_size,
            .below_key = "vocab_size"};
  }
  Shape output_shape(const Shape& input) const override;
  const ParameterPtr& weight() const { return weight_; }

 protected:
  /// *Errors:* StateError if the input is not `token_ids`; DataError that names an id out of
  /// range, its place and the size of the vocabulary.
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
};

/// The initializer of an embedding's weight. *Errors:* ConfigError, which begins with `layer`, if
/// the initialization depends on a fan-in.
Initializer embedding_initializer(std::string_view layer, const WeightDraw& init);

}  // namespace lacuna
