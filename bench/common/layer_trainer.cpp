#include "common/layer_trainer.h"

#include <string>

#include "common/operands.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/layers/linear.h"

namespace lacuna::bench {

LayerTrainer::LayerTrainer(const LayerOptions& options) {
  model_.add<Linear>("layer", {.in_features = options.side, .out_features = options.side});
  optimizer_ = std::make_unique<Adam>(model_.parameters());
  algorithm_ = apply_sparsity(options.sparsity, {"layer.weight"}, model_, *optimizer_);
  const Order order = weight().pattern()->layout().order(options.batch, options.side);
  for (int i = 0; i < options.batches; ++i) {
    const Shape shape{options.batch, options.side};
    x_.push_back(random_tensor(shape, "x" + std::to_string(i), order));
    dy_.push_back(random_tensor(shape, "dy" + std::to_string(i), order));
  }
}

void LayerTrainer::forward_backward() {
  next_ = (next_ + 1) % x_.size();
  backward(model_(Variable::leaf(x_[next_])), dy_[next_]);
}

int64_t LayerTrainer::batch_bytes() const {
  return static_cast<int64_t>(x_.size()) * (x_[0].bytes() + dy_[0].bytes());
}

void LayerTrainer::update() {
  optimizer_->step();
  optimizer_->zero_grad();
}

}  // namespace lacuna::bench
