// What a network's convolutions alone cost with oneDNN: the floor under a dense pass.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/measure.h"
#include "conv/contender.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna::bench {

/// The convolutions of a model, each size of them once.
class ConvolutionSum {
 public:
  /// `products`: those that a pass needs. *Errors:* those of check.
  ConvolutionSum(const Module& model, int64_t batch, std::span<const Product> products);

  /// Each product of each size by each of the opponents. *Lifetime:* this object's.
  std::vector<Work> works() const;
  /// The sum over all layers of their products, each by the faster opponent.
  double best_ms(const std::map<std::string, std::vector<Timing>>& timings) const;

 private:
  struct Size {
    ConvolutionWorkload workload;
    Opponents opponents;
    int64_t layers = 0;
    bool is_first = false;  ///< its input wants no gradient

    std::string name() const;
    bool has(Product product) const { return !is_first || product != Product::InputGradient; }
  };

  void release_results() const;

  std::vector<Product> products_;
  std::deque<Size> sizes_;  // workloads stay where they are
};

}  // namespace lacuna::bench
