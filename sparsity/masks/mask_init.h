// The first mask of a parameter, by `init_method`.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/param/parameter.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// The arguments of an init method.
struct MaskInitRequest {
  const Parameter& parameter;
  float sparsity = 0.0f;  ///< in [0, 1], rounded to float32
  int64_t nnz = 0;        ///< positions to keep, by the counting rule or a distribution's budget
  ScoreGroups groups;
  PatternShape pattern = {};
  uint64_t seed = 0;
};

/// How the first mask is made: a built-in method by name, or the user's own function.
class InitMethod {
 public:
  using Function = std::function<MaskSet(const MaskInitRequest&)>;

  /// "random" (the default), "balanced" (each row and each column has its share), "topk",
  /// "from_zeros", "checkerboard", "inherit" (the existing mask of the parameter, from the run of
  /// its values; pruned by |w| if it has more than the target). *Errors:* ConfigError with the
  /// nearest name.
  InitMethod(std::string name = "random");  // NOLINT: a name is a method
  InitMethod(const char* name) : InitMethod(std::string(name)) {}
  InitMethod(Function function);  // NOLINT: a callable is a method
  static InitMethod from_config(const Config& config);

  const std::string& name() const { return name_; }
  /// Whether existing masks are kept, as in a phase that follows another.
  bool inherits() const { return name_ == "inherit"; }
  /// *Errors:* ShapeError if the new mask has another size than the parameter.
  MaskSet make(const MaskInitRequest& request) const;

 private:
  std::string name_;
  Function function_;
};

/// An evenly spread mask of shape [rows, columns]; its count follows from the formula. With d = 1 −
/// s, t(i) = floor(i·d + 1e-5) and P = ceil(columns/d + 1e-5), the base row is b(i) = [t(i+1) ≠
/// t(i)] for i = 0 … columns + P − 2; row r is the base row rotated by −r·floor(1/d − 1e-5). s, d
/// and the products i·d in float32, the rest in double.
MaskSet checkerboard_mask(int64_t rows, int64_t columns, float sparsity);

}  // namespace lacuna
