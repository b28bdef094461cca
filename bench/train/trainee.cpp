#include "train/trainee.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/operations.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/linear.h"

namespace lacuna::bench {
namespace {

constexpr int64_t kBatch = 128;

}  // namespace

TrainingData load_training_data(int64_t drawn_examples) {
  if (const char* data = std::getenv("LACUNA_DATA_DIR"); data != nullptr) {
    const std::filesystem::path below = std::filesystem::path(data) / "mnist";
    const std::string folder = std::filesystem::is_directory(below) ? below.string() : data;
    const std::filesystem::path images = std::filesystem::path(folder) / "train-images-idx3-ubyte";
    if (std::filesystem::exists(images) || std::filesystem::exists(images.string() + ".gz")) {
      const Config mnist = Config::map({{"type", "mnist"}, {"dir", folder}});
      return {load_data(mnist, 0).train, "MNIST"};
    }
  }
  const Config glyphs =
      Config::map({{"type", "glyphs"}, {"train_size", drawn_examples}, {"test_size", int64_t{10}}});
  return {load_data(glyphs, 0).train, "drawn digits"};
}

// No prefetching: its thread would work on another core, uncounted.
Trainee::Trainee(std::shared_ptr<const Dataset> data, const std::vector<int64_t>& hidden,
                 const SparsityCase& sparsity, double dropout)
    : loader_(std::move(data), {.batch_size = kBatch, .prefetch = 0}) {
  const Dataset& dataset = loader_.dataset();
  int64_t features = dataset.example_shape().numel();
  model_.add<Flatten>("flatten");
  for (size_t i = 0; i < hidden.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    model_.add<Linear>("fc" + number, {.in_features = features, .out_features = hidden[i]});
    model_.add<ReLU>("relu" + number);
    if (dropout > 0.0) model_.add<Dropout>("dropout" + number, {.p = dropout});
    sparse_.push_back("fc" + number + ".weight");
    features = hidden[i];
  }
  model_.add<Linear>("classifier",
                     {.in_features = features, .out_features = dataset.num_classes()});
  model_.initialize(0);
  optimizer_ = std::make_unique<Adam>(model_.parameters());
  algorithm_ = apply_sparsity(sparsity, sparse_, model_, *optimizer_);
}

double Trainee::operations() const {
  return operations_of(model_, loader_.dataset().example_shape(), kBatch, Extent::Training);
}

float Trainee::step() {
  const Batch batch = loader_.next();
  const Variable loss = cross_entropy(model_(batch.inputs), batch.labels);
  backward(loss);
  optimizer_->step();
  optimizer_->zero_grad();
  return loss.value().item();
}

}  // namespace lacuna::bench
