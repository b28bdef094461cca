// Sparsifier: chooses the elements of a tensor that stay, for weights, activations or gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/config/registry.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Chooses a tensor's elements. Registered under a name, it can be used in YAML, as `{type: <name>,
/// …}`. The separation of sparsifiers, layouts and operators follows *STen: Productive and
/// efficient sparsity in PyTorch*, Ivanov et al., 2023 (arXiv:2304.07613).
class Sparsifier {
 public:
  /// The part of the tensor that a sparsifier needs to decide on one element.
  enum class Scope {
    Streaming,      ///< the element alone
    Blocking,       ///< a group of neighbours
    Materializing,  ///< the whole tensor
  };

  virtual ~Sparsifier() = default;
  /// Its name in a configuration, as in "nm".
  virtual std::string_view type() const = 0;
  virtual Scope scope() const = 0;
  /// The pattern of the kept elements: weights are then stored in the layout for it.
  virtual PatternShape pattern() const { return PatternShape(); }
  /// The elements of a row-major tensor that stay. `name` is the tensor's, for messages and as a
  /// key of random choices. A function of only its arguments, so that a resumed run repeats it.
  /// *Shapes:* [..., features]; for images whose neighbours matter, [batch, height · width,
  /// channels]. *Errors:* ShapeError that names the tensor and its shape.
  virtual BitMask keep(const Tensor& rows, const std::string& name) const = 0;
  /// The elements of a weight that stay: by default those of `keep` for the matrix of its outputs
  /// and all other dimensions. A pattern instead applies to outputs and input channels, at each tap
  /// of a convolution. *Shapes:* [out, in], [out, in / groups, kh, kw], row-major.
  virtual BitMask keep_weight(const Tensor& weight, const std::string& name) const;
  /// N and M, if the kept elements are exactly the n largest |x| of each m features (of equal ones,
  /// the first): an activation is then selected by `keep_nm`, and a following linear layer may run
  /// sparse products.
  virtual std::optional<PatternShape> as_nm() const { return std::nullopt; }
  /// Refuses a shape that `keep` would refuse, before there is a tensor. *Errors:* ShapeError.
  virtual void require_fit(const Shape& /*rows*/, const std::string& /*name*/) const {}
};

using SparsifierPtr = std::shared_ptr<const Sparsifier>;
using SparsifierRegistry = Registry<SparsifierPtr(const Config& options, uint64_t seed)>;

/// The one registry of this program.
SparsifierRegistry& sparsifier_registry();
/// Adds the built-in sparsifiers.
void register_sparsifiers(SparsifierRegistry& registry);
/// From `{type: scalar_fraction, fraction: 0.9}`, or a name alone. *Errors:* ConfigError.
SparsifierPtr make_sparsifier(const Config& config, uint64_t seed);

}  // namespace lacuna
