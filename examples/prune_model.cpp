// A trained dense MLP, pruned in one shot by SparseGPT.
// usage: prune_model [EPOCHS]
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "lacuna/lacuna.h"

using namespace lacuna;

double accuracy(Sequential& model, const Dataset& data) {
  return 100 * evaluate(model, LossFunction(), data, 1000).accuracy;
}

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 5;

  register_builtins();
  const DataSplits data =
      load_data(Config::map({{"type", "glyphs"}, {"normalize", "standard"}}), 0);
  Sequential model;
  model.add<Flatten>("flatten");
  model.add<Linear>("fc1", {.in_features = 784, .out_features = 300});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 300, .out_features = 10});
  Adam optimizer(model.parameters(), {.lr = 3e-3});
  Loader loader(data.train, {.batch_size = 128});
  while (loader.epoch() < epochs) {
    const Batch batch = loader.next();
    backward(cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
  }
  const double dense = accuracy(model, *data.test);

  // A few batches show the inputs of each layer.
  std::vector<Tensor> batches;
  for (int i = 0; i < 4; ++i) batches.push_back(loader.next().inputs);

  OneShotPruning pruning(
      {.common = {.sparsity = 0.5}, .pruning = OneShotOptions::defaults(OneShotMethod::SparseGpt)});
  pruning.calibrate_with([&](Module& module) {
    for (const Tensor& batch : batches) module(Variable(batch));
  });
  model.apply(pruning);
  pruning.prune();  // or at the first training step
  for (const MaskUpdate& layer : pruning.pruned()) {
    std::cout << layer.parameter << ' ' << *layer.relative_error << '\n';
  }

  const double pruned = accuracy(model, *data.test);
  std::printf("test accuracy %.2f %%, at half the weights %.2f %%\n", dense, pruned);
  return model.parameter("fc1.weight")->pattern()->density() == 0.5 && pruned > dense - 5 ? 0 : 1;
}
