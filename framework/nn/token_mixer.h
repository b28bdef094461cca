// TokenMixer: the interface of a module in which tokens affect each other.
#pragma once

namespace lacuna {

/// An additional base class of such modules, so that a model can be checked against the data's
/// labels.
class TokenMixer {
 public:
  virtual ~TokenMixer() = default;
  /// Whether a token sees only itself and the tokens before it.
  virtual bool is_causal() const = 0;
};

}  // namespace lacuna
