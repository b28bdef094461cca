// What the convolution benchmark compares: implementations of a convolution's three products.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "conv/workload.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna::bench {

enum class Product { Forward, InputGradient, WeightGradient };
inline constexpr std::array kProducts = {Product::Forward, Product::InputGradient,
                                         Product::WeightGradient};
/// "forward", "input gradient", "weight gradient".
const char* to_string(Product product);

/// One implementation, ready to run on one workload, which must outlive it. Operands lie in the
/// order that it wants; results are allocated again by each run, as in training.
class ConvolutionContender {
 public:
  virtual ~ConvolutionContender() = default;
  /// The weights change, as between two steps: whatever is derived from them is stale.
  virtual void change_weights() {}
  /// Lets the results of the last runs go, as a step's are gone when the next begins: their memory
  /// is that of the next contender's results.
  virtual void release_results() = 0;
  virtual void run(Product product) = 0;
  /// The additional cost of a product between row-major neighbours: for the forward product, x is
  /// converted and y is converted back; for the input's gradient, dy and dx; for the weight's,
  /// nothing, because both are converted already.
  virtual void convert(Product product) = 0;
  /// What computes the products, where that is worth knowing.
  virtual std::string implementation() const { return {}; }

  // Results of the last runs, for the check against the reference.
  virtual Tensor y() const = 0;   ///< row-major
  virtual Tensor dx() const = 0;  ///< row-major
  virtual Tensor dw() const = 0;  ///< [out, in, kernel]; only positions in the mask are compared
};

using ConvolutionContenderPtr = std::unique_ptr<ConvolutionContender>;

/// The dense opponents: oneDNN's primitives on formats of its own choice, weights included, with
/// its own threading. Where lacuna was built without oneDNN, lacuna's own dense products.
struct Opponents {
  ConvolutionContenderPtr direct;     ///< computed from the definition
  ConvolutionContenderPtr automatic;  ///< as oneDNN sees fit: by Winograd's algorithm, if it has it
};
Opponents make_convolution_opponents(const ConvolutionWorkload& workload);

/// One of lacuna's layouts, as the convolution operation runs it; activations and their gradients
/// are in the layout's own order, as within a chain of layers like it.
ConvolutionContenderPtr make_convolution_layout(const ConvolutionWorkload& workload,
                                                PatternPtr pattern);

/// Runs a contender and compares a sample of its results with sums in double precision.
/// *Errors:* Error that names the contender when one is off by more than float32 rounding.
void check(const std::string& name, ConvolutionContender& contender,
           const ConvolutionWorkload& workload);

}  // namespace lacuna::bench
