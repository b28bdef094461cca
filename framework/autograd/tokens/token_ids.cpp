#include "lacuna/framework/autograd/tokens/token_ids.h"

#include <algorithm>
#include <memory>

namespace lacuna {

Variable TokenIds::compute() {
  Tensor values = Tensor::empty(ids.shape());
  std::ranges::transform(ids.values(), values.mutable_data(),
                         [](int64_t id) { return static_cast<float>(id); });
  return values;
}

Variable token_ids(IndexTensor ids) {
  const Shape shape = ids.shape();
  return Variable::deferred(shape, std::make_shared<TokenIds>(std::move(ids)));
}

const IndexTensor* ids_of(const Variable& variable) {
  const auto* tokens = dynamic_cast<const TokenIds*>(variable.deferred_value().get());
  return tokens == nullptr ? nullptr : &tokens->ids;
}

}  // namespace lacuna
