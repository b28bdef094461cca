// A small residual network on colour images, its convolutions sparse by RigL, in C++ alone.
// usage: residual_network [EPOCHS]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lacuna/lacuna.h"

using namespace lacuna;

// A 3 x 3 convolution; the normalization after it makes a bias unnecessary.
template <class Group>
void add_convolution(Group& group, const std::string& number, int64_t in, int64_t out,
                     int64_t stride) {
  group.template add<Conv2d>("conv" + number, {.in_channels = in,
                                               .out_channels = out,
                                               .stride = {stride, stride},
                                               .padding = {1, 1},
                                               .bias = false,
                                               .init = WeightInit::KaimingNormal});
  group.template add<BatchNorm>("bn" + number, {.channels = out});
}

// y = relu(layers(x) + shortcut(x)); the layers of a residual get names at the level of its parent,
// as in block1.conv1.
void add_block(Sequential& model, const std::string& name, int64_t in, int64_t out,
               int64_t stride) {
  auto& block = model.add<Sequential>(name);
  auto& residual = block.add<Residual>("residual");
  add_convolution(residual, "1", in, out, stride);
  residual.add<ReLU>("relu1");
  add_convolution(residual, "2", out, out, 1);
  if (stride > 1) {
    residual.add_shortcut<SubsamplePad>("shortcut", {.channels = out, .stride = {stride, stride}});
  }
  block.add<ReLU>("relu2");
}

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 10;
  register_builtins();
  const DataSplits data = load_data(
      Config::map({{"type", "colour_glyphs"}, {"train_size", 4000}, {"normalize", "standard"}}), 0);

  Sequential model;
  add_convolution(model, "1", 3, 16, 1);
  model.add<ReLU>("relu1");
  add_block(model, "block1", 16, 16, 1);
  add_block(model, "block2", 16, 32, 2);
  add_block(model, "block3", 32, 64, 2);
  model.add<GlobalAveragePool>("pool");
  model.add<Linear>("fc", {.in_features = 64, .out_features = 10});
  std::printf("images %s give %s\n", data.train->example_shape().to_string().c_str(),
              model.output_shape(data.train->example_shape()).to_string().c_str());

  AdamW optimizer(model.parameters(), {.lr = 3e-3, .weight_decay = 0.01});
  RigL sparsity({.sparsity = 0.8, .param_filter = "block*.conv*.weight"});
  model.apply(sparsity);
  optimizer.apply(sparsity);

  Loader loader(data.train, {.batch_size = 64});
  while (loader.epoch() < epochs) {
    const Batch batch = loader.next();
    const Variable loss = cross_entropy(model(batch.inputs), batch.labels);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (loader.batch_in_epoch() == 0) std::printf("loss %.4f\n", loss.value().item());
  }
  const Evaluation result = evaluate(model, LossFunction(), *data.test, 500);
  std::printf("test accuracy %.2f %%, %lld of %lld weights of block3.conv1\n",
              100 * result.accuracy,
              static_cast<long long>(model.parameter("block3.conv1.weight")->pattern()->nnz()),
              static_cast<long long>(model.parameter("block3.conv1.weight")->numel()));
  return result.accuracy > 0.2 ? 0 : 1;  // of ten classes
}
