// Trained weights from elsewhere on all of CIFAR-10's test images: the accuracy that PyTorch finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "golden/models.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "test_data.h"

namespace lacuna::cifar10_accuracy_test {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32, kRecord = kPixels + 1, kBatch = 250;

// The official binary file: for each image a byte of the label, then the channels' pixels.
std::vector<uint8_t> read_records(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(bytes.size(), static_cast<size_t>(10000 * kRecord)) << path;
  return bytes;
}

int64_t count_correct(Sequential& model, const Hdf5File& file, const uint8_t* records) {
  Tensor pixels = Tensor::empty({kBatch, 3, 32, 32});
  for (int64_t i = 0; i < kBatch; ++i) {
    std::copy_n(records + i * kRecord + 1, kPixels, pixels.mutable_data() + i * kPixels);
  }
  const Tensor images =
      golden::normalized(pixels, file.read_floats("mean"), file.read_floats("std"));
  const std::vector<float> logits = model(images).value().to_vector();
  const auto classes = static_cast<int64_t>(logits.size()) / kBatch;
  int64_t correct = 0;
  for (int64_t i = 0; i < kBatch; ++i) {
    const float* first = logits.data() + i * classes;
    correct += std::max_element(first, first + classes) - first == records[i * kRecord] ? 1 : 0;
  }
  return correct;
}

TEST(Cifar10Accuracy, OfTrainedWeightsIsThatOfPyTorch) {
  const auto folder = data_folder("cifar-10-batches-bin");
  if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with cifar-10-batches-bin/";
  const std::vector<uint8_t> records = read_records(*folder + "/test_batch.bin");
  const auto images = static_cast<int64_t>(records.size()) / kRecord;
  for (const std::string& name : golden::models(golden::ModelKind::ResNetInference)) {
    const Hdf5File file = golden::open("models/" + name + ".h5");
    const std::string weights = golden::model_path(name + ".safetensors");
    const auto net = golden::CifarResNet::of(name, SafetensorsFile(weights));
    const auto model = golden::build(net.yaml(), name, Shape{3, 32, 32});
    load_weights(weights, *model);
    model->eval();
    const NoGrad no_grad;
    int64_t correct = 0;
    for (int64_t first = 0; first + kBatch <= images; first += kBatch) {
      correct += count_correct(*model, file, records.data() + first * kRecord);
    }
    EXPECT_NEAR(static_cast<double>(correct) / static_cast<double>(images),
                file.attribute_number("/", "accuracy_all"), 0.0002)
        << name;
  }
}

}  // namespace
}  // namespace lacuna::cifar10_accuracy_test
