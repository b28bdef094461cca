#include "common/operations.h"

#include "lacuna/framework/nn/module_rows.h"

namespace lacuna::bench {

double operations_of(const Module& model, const Shape& example, int64_t examples, Extent extent) {
  const Flops flops = count_flops(module_rows(model, example),
                                  [](const Parameter& weight) { return weight.pattern()->nnz(); });
  const double of_example = extent == Extent::Forward ? flops.forward : flops.training;
  return of_example * static_cast<double>(examples);
}

}  // namespace lacuna::bench
