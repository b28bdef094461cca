// A sparse MLP from C++, without a configuration: defined, trained, evaluated, saved and loaded.
// usage: mlp [EPOCHS] [FILE]
#include <cstdio>
#include <cstdlib>

#include "lacuna/lacuna.h"

using namespace lacuna;

// An MLP, for images of 28 x 28 pixels in ten classes.
void define(Sequential& model) {
  model.add<Flatten>("flatten");
  model.add<Linear>("fc1", {.in_features = 784, .out_features = 300});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 300, .out_features = 10});
}

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 10;
  const char* file = argc > 2 ? argv[2] : "mlp.h5";

  register_builtins();
  const DataSplits data =
      load_data(Config::map({{"type", "glyphs"}, {"normalize", "standard"}}), 0);

  Sequential model;
  define(model);
  Adam optimizer(model.parameters(), {.lr = 3e-3});

  // Sparse from here on: 90 % of the weights of fc1 are pruned and stay pruned.
  Static sparsity({.sparsity = 0.9, .param_filter = "fc1.weight"});
  model.apply(sparsity);
  optimizer.apply(sparsity);

  Loader loader(data.train, {.batch_size = 128});
  while (loader.epoch() < epochs) {
    const Batch batch = loader.next();
    const Variable loss = cross_entropy(model(batch.inputs), batch.labels);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (loader.batch_in_epoch() == 0) std::printf("loss %.4f\n", loss.value().item());
  }
  const Evaluation trained = evaluate(model, LossFunction(), *data.test, 1000);
  std::printf("test accuracy %.2f %%\n", 100 * trained.accuracy);

  save_model(file, model);
  Sequential loaded;
  define(loaded);
  load_weights(file, loaded);  // the mask too
  const Evaluation again = evaluate(loaded, LossFunction(), *data.test, 1000);
  std::printf("loaded from %s: %.2f %%, density of fc1 %.2f\n", file, 100 * again.accuracy,
              loaded.parameter("fc1.weight")->pattern()->density());
  return again.accuracy == trained.accuracy ? 0 : 1;
}
