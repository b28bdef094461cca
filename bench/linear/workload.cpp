#include "linear/workload.h"

#include <utility>

#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/pointwise/mask.hpp"

namespace lacuna::bench {

LinearWorkload LinearWorkload::random(int64_t batch, int64_t in, int64_t out, double sparsity,
                                      Degrees degrees) {
  LinearWorkload w{.batch = batch, .in = in, .out = out, .sparsity = sparsity};
  w.x = random_tensor(Shape{batch, in}, "x");
  w.dy = random_tensor(Shape{batch, out}, "dy");
  w.x_slabs = w.x.to(Order::BatchSlabs);
  w.dy_slabs = w.dy.to(Order::BatchSlabs);
  w.bias = random_tensor(Shape{out}, "bias");
  return w.with(random_mask(out, in, sparsity, degrees));
}

LinearWorkload LinearWorkload::with(BitMask positions) const {
  LinearWorkload w = *this;
  w.mask = std::move(positions);
  w.nnz = w.mask.count();
  const Tensor values = random_tensor(Shape{out, in}, "weight");
  w.weight = Tensor::zeros(Shape{out, in});
  w.mask.for_each([&](int64_t i) { w.weight.mutable_data()[i] = values.data()[i]; });
  return w;
}

LinearWorkload LinearWorkload::with_activations(int n, int m) const {
  BitMask all = BitMask::zeros(out * in);
  for (int64_t i = 0; i < out * in; ++i) all.set(i);
  LinearWorkload w = with(std::move(all));
  w.nnz = out * in / m * n;
  w.kept =
      nm_select({.rows = batch, .columns = in, .pattern = PatternShape::nm(n, m)}, x.storage());
  w.x = x.clone();
  select_by_mask(w.kept, w.x.mutable_storage());
  w.x_slabs = w.dy_slabs = Tensor();
  return w;
}

}  // namespace lacuna::bench
