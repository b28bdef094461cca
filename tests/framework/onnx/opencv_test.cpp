// Exported networks of images and features give in OpenCV's runtime what they give here.
#include <gtest/gtest.h>

#include <opencv2/dnn.hpp>

#include "framework/onnx/onnx_models.h"
#include "framework/shrink/small_models.h"
#include "throws.h"

namespace lacuna::opencv_test {
namespace {

std::vector<float> run_in_opencv(const std::string& path, const Tensor& inputs) {
  cv::dnn::Net net = cv::dnn::readNetFromONNX(path);
  std::vector<int> sizes;
  for (int i = 0; i < inputs.shape().rank(); ++i)
    sizes.push_back(static_cast<int>(inputs.shape()[i]));
  const std::vector<float> values = inputs.to_vector();
  cv::Mat blob(sizes, CV_32F);
  std::copy(values.begin(), values.end(), blob.ptr<float>());
  net.setInput(blob);
  const cv::Mat output = net.forward().clone();
  return {output.ptr<float>(), output.ptr<float>() + output.total()};
}

void expect_equal_in_opencv(const std::string& yaml, const Shape& example) {
  const std::unique_ptr<Sequential> model = onnx_tests::make_model(yaml, example);
  const TemporaryFolder folder;
  export_onnx(*model, example, {}, folder / "model.onnx");
  for (const int64_t size : {1, 4}) {
    const Batch batch = onnx_tests::make_batch(size, example, 0);
    onnx_tests::expect_near(run_in_opencv(folder / "model.onnx", batch.inputs),
                            onnx_tests::outputs_of(*model, batch),
                            yaml + ", batch " + std::to_string(size));
  }
}

TEST(OpenCv, RunsAnMlp) {
  expect_equal_in_opencv(
      "[flatten, {type: linear, out_features: 24}, relu, {type: linear, out_features: 16}, "
      "leaky_relu,\n {type: linear, out_features: 16}, sigmoid, {type: linear, out_features: 5}]",
      {1, 6, 7});
}

TEST(OpenCv, RunsAConvolutionalNetwork) {
  expect_equal_in_opencv(
      "[{type: conv2d, out_channels: 8, kernel: 5, padding: 2}, {type: batch_norm}, relu,\n"
      " {type: max_pool, kernel: 2}, {type: conv2d, out_channels: 8, kernel: 3, groups: 2, stride: "
      "2},\n tanh, {type: avg_pool, kernel: 2}, flatten, {type: linear, out_features: 10}]",
      {3, 20, 20});
}

TEST(OpenCv, RunsModelsThatWereMadeSmaller) {
  for (const shrink_tests::SmallModel& small : shrink_tests::small_models()) {
    const std::string name = small.name;
    if (name != "flatten" && name != "concatenation" && name != "padded_shortcuts" &&
        name != "wide") {
      continue;
    }
    shrink_tests::Cut cut(small);
    const auto smaller = cut.build(small.example);
    const TemporaryFolder folder;
    export_onnx(*smaller, small.example, {}, folder / "model.onnx");
    const Batch batch = onnx_tests::make_batch(4, small.example, 0);
    onnx_tests::expect_near(run_in_opencv(folder / "model.onnx", batch.inputs),
                            onnx_tests::outputs_of(*smaller, batch), name);
  }
}

// Documented in docs/guides/onnx.md, and a note of `lacuna export` says so. OpenCV 4.6 crashes on
// the sparse weight of a convolution.
TEST(OpenCv, DoesNotReadSparseInitializers) {
  const Shape example{20};
  const auto model =
      onnx_tests::make_model("[{type: linear, name: fc1, out_features: 30}, relu]", example);
  const ParameterPtr weight = model->parameter("fc1.weight");
  BitMask mask = BitMask::zeros(weight->numel());
  for (int64_t i = 0; i < weight->numel(); i += 5) mask.set(i);
  weight->set_pattern(Pattern::make(csr_layout(), weight->shape(), mask));
  const TemporaryFolder folder;
  EXPECT_EQ(export_onnx(*model, example, {}, folder / "sparse.onnx", OnnxValues::Sparse), 1u);
  EXPECT_EQ(export_onnx(*model, example, {}, folder / "dense.onnx"), 0u);
  const Batch batch = onnx_tests::make_batch(4, example, 0);
  onnx_tests::expect_near(run_in_opencv(folder / "dense.onnx", batch.inputs),
                          onnx_tests::outputs_of(*model, batch), "dense");
  expect_throws<cv::Exception>([&] { run_in_opencv(folder / "sparse.onnx", batch.inputs); },
                               "Blob fc1.weight not found in const blobs");
}

TEST(OpenCv, RunsAResNet) {
  expect_equal_in_opencv("{type: cifar_resnet, depth: 20, num_labels: 10}", {3, 32, 32});
}

}  // namespace
}  // namespace lacuna::opencv_test
