// Trains a tiny sparse MLP with an installed lacuna; exits with 0 when its loss falls and its mask
// holds.
#include <cstdio>

#include "lacuna/lacuna.h"

using namespace lacuna;

int main() {
  const DataSplits data = load_glyphs(Config::map({{"train_size", 256}, {"test_size", 32}}), 0);

  Sequential model;
  model.add<Flatten>("flatten");
  model.add<Linear>("fc1", {.in_features = 784, .out_features = 32});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 32, .out_features = 10});
  AdamW optimizer(model.parameters(), {.lr = 1e-2});
  RigL sparsity({.sparsity = 0.8, .update = UpdateSchedule::every(10), .drop_fraction = 0.3});
  model.apply(sparsity);
  optimizer.apply(sparsity);

  Loader loader(data.train, {.batch_size = 64});
  const double before = evaluate(model, LossFunction(), *data.train, 256).loss;
  for (int step = 0; step < 40; ++step) {
    const Batch batch = loader.next();
    backward(cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
  }
  const double after = evaluate(model, LossFunction(), *data.train, 256).loss;
  const double density = model.parameter("fc1.weight")->pattern()->density();
  std::printf("lacuna %s: loss %.3f, then %.3f; density %.3f\n", kVersion, before, after, density);
  return after < 0.7 * before && density < 0.201 ? 0 : 1;
}
