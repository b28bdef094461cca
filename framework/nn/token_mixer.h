// TokenMixer: the interface of a module in which tokens see each other.
#pragma once

namespace lacuna {

/// A second base of such modules, so that a model is held against what the data's labels tell.
class TokenMixer {
 public:
  virtual ~TokenMixer() = default;
  /// Whether a token sees itself and those before it alone.
  virtual bool is_causal() const = 0;
};

}  // namespace lacuna
