#include "conv/contender.h"

namespace lacuna::bench {

const char* to_string(Product product) {
  switch (product) {
    case Product::Forward:
      return "forward";
    case Product::InputGradient:
      return "input gradient";
    case Product::WeightGradient:
      break;
  }
  return "weight gradient";
}

}  // namespace lacuna::bench
