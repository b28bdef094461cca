#include "mlp/workload.h"

#include "common/operands.h"

namespace lacuna::bench {

MlpOperands MlpOperands::random(int64_t tokens, int64_t features) {
  return {.x = random_tensor(Shape{tokens, features}, "x"),
          .dy = random_tensor(Shape{tokens, features}, "dy")};
}

}  // namespace lacuna::bench
