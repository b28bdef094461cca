#include "lacuna/framework/autograd/ops/token_ids.h"

#include <algorithm>
#include <memory>

namespace lacuna {

Variable TokenIds::compute() {
  Tensor floats = Tensor::empty(ids_.shape());
  std::ranges::transform(ids_.values(), floats.mutable_data(),
                         [](int64_t id) { return static_cast<float>(id); });
  return floats;
}

Variable token_ids(IndexTensor ids) {
  const Shape shape = ids.shape();
  return Variable::deferred(shape, std::make_shared<TokenIds>(std::move(ids)));
}

const IndexTensor* ids_of(const Variable& variable) {
  const auto* ids = dynamic_cast<const TokenIds*>(variable.deferred_value().get());
  return ids == nullptr ? nullptr : &ids->ids();
}

}  // namespace lacuna
