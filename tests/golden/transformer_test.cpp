// Whole transformers against PyTorch: outputs, losses, every gradient, steps of AdamW; with the
// linear layers' weights as they are, masked and in csr, all positions held. With half of them
// held, masked and csr give the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "golden/models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/model/presets/foreign_names.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna::transformer_test {
namespace {

using golden::expect_near_largest;
using golden::ModelKind;

float largest_magnitude(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
    }
  }
  return result;
}

/// A model of the files with its first weights, its weights of linear layers in a layout.
class GoldenTransformer {
 public:
  GoldenTransformer(const std::string& name, const Layout& layout, double density = 1.0)
      : name_(name + ", " + std::string(layout.name())),
        file_(golden::open("models/" + name + ".h5")) {
    const std::string weights = golden::model_path(name + ".safetensors");
    read_batch();
    Config section = parse_yaml(file_.attribute_text("/", "config"), name);
    section.set("type", section.required<std::string>("model_type"));
    section.erase("model_type");
    if (batch_.labels.shape().rank() == 1) {
      section.set("num_labels", SafetensorsFile(weights).tensor("classifier.weight").shape[0]);
    } else if (section.required<std::string>("type") == "bert") {
      section.set("head", std::string("masked_lm"));
    }
    register_builtins();
    model_ = build_model(model_layers(section), example_shape());
    load_weights(weights, *model_);
    if (&layout != &dense_layout()) hold_in(layout, density);
  }

  void check_evaluation() {
    model_->eval();
    const NoGrad no_grad;
    const Variable output = run_model(*model_, batch_);
    expect_near_largest(output.value(), file_.read_floats("output_eval"), name_ + " output_eval");
    expect_loss(output, file_.attribute_number("/", "loss_eval"), "loss_eval");
  }

  void check_gradients() {
    model_->train();
    const Variable output = run_model(*model_, batch_);
    expect_near_largest(output.value(), file_.read_floats("output"), name_ + " output");
    backward(expect_loss(output, file_.attribute_number("/", "loss"), "loss"));
    const std::vector<std::string> names = golden::cases(file_, "grad");
    float largest = 0.0f;
    for (const std::string& name : names) {
      largest = std::max(largest, largest_magnitude(file_.read_floats("grad/" + name).to_vector()));
    }
    std::set<std::string> missing;
    for (const ParameterPtr& parameter : model_->parameters()) missing.insert(parameter->name());
    for (const std::string& name : names) {
      expect_gradient(name, largest);
      missing.erase(name_in_model(name));
    }
    EXPECT_TRUE(missing.empty()) << name_ << ": no gradient of " << *missing.begin();
  }

  void check_steps() {
    AdamW optimizer(model_->parameters(),
                    golden::adamw_options(file_.attribute_text("/", "optimizer")));
    optimizer.zero_grad();
    const std::vector<float> losses = file_.read_floats("losses").to_vector();
    ASSERT_FALSE(losses.empty()) << name_;
    for (size_t i = 0; i < losses.size(); ++i) {
      const Variable loss = expect_loss(run_model(*model_, batch_), losses[i],
                                        "loss before step " + std::to_string(i + 1));
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
  }

  /// Output, and the gradients of all parameters, zero where a weight holds no position.
  std::vector<Tensor> output_and_gradients() {
    model_->train();
    const Variable output = run_model(*model_, batch_);
    backward(cross_entropy(output, batch_.labels));
    std::vector<Tensor> all = {output.value().to(Order::RowMajor)};
    for (const ParameterPtr& parameter : model_->parameters()) {
      all.push_back(golden::dense_gradient(*parameter));
    }
    return all;
  }

 private:
  void read_batch() {
    if (file_.exists("pixel_values")) {
      batch_.inputs = file_.read_floats("pixel_values");
    }
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids"}) {
      if (file_.exists(name)) {
        batch_.named[name] = IndexTensor(file_.shape(name), file_.read_integers(name));
      }
    }
    if (file_.exists("labels")) {
      batch_.labels = IndexTensor(file_.shape("labels"), file_.read_integers("labels"));
    } else {  // the next token of each
      const IndexTensor& ids = batch_.named.at("input_ids");
      const auto length = static_cast<size_t>(ids.shape()[1]);
      std::vector<int64_t> labels(ids.values().begin() + 1, ids.values().end());
      labels.push_back(kIgnoredLabel);
      for (size_t i = length - 1; i < labels.size(); i += length) labels[i] = kIgnoredLabel;
      batch_.labels = IndexTensor(ids.shape(), labels);
    }
    batch_.size = batch_.labels.shape()[0];
  }

  Shape example_shape() const {
    if (batch_.inputs.defined()) return Shape(batch_.inputs.shape().sizes().subspan(1));
    return Shape{batch_.named.at("input_ids").shape()[1]};
  }

  // The positions that are held are drawn by the parameter's name.
  void hold_in(const Layout& layout, double density) {
    int held = 0;
    for (const ParameterPtr& parameter : model_->parameters()) {
      if (parameter->use != WeightUse::Linear) continue;
      const CounterRng rng(7, parameter->name());
      std::vector<int64_t> flat;
      for (int64_t i = 0; i < parameter->shape().numel(); ++i) {
        if (density >= 1.0 || rng.uniform(static_cast<uint64_t>(i)) < density) flat.push_back(i);
      }
      parameter->set_pattern(Pattern::make(layout, parameter->shape(),
                                           Positions::of(parameter->shape(), flat),
                                           parameter->pattern()->lifetime()));
      ++held;
    }
    EXPECT_GT(held, 0) << name_;
  }

  Variable expect_loss(const Variable& output, double expected, const std::string& what) const {
    const Variable loss = cross_entropy(output, batch_.labels);
    EXPECT_NEAR(loss.value().item(), expected, 1e-5 * expected) << name_ << " " << what;
    return loss;
  }

  // The file's name may be without its prefix, or an older one.
  std::string name_in_model(const std::string& name) const {
    std::set<std::string> known;
    for (const ParameterPtr& parameter : model_->parameters()) known.insert(parameter->name());
    return known.contains(name) ? name : foreign_name(name, known).value_or(name);
  }

  void expect_gradient(const std::string& name, float largest_of_model) const {
    const ParameterPtr parameter = model_->parameter(name_in_model(name));
    std::vector<float> expected = file_.read_floats("grad/" + name).to_vector();
    if (is_conv1d_weight(parameter->name())) {  // [in, out] in the file
      expected = transposed(expected, parameter->shape()[1], parameter->shape()[0]);
    }
    const std::vector<float> found = golden::dense_gradient(*parameter).to_vector();
    ASSERT_EQ(found.size(), expected.size()) << name_ << " grad/" << name;
    const float tolerance = 1e-4f * largest_magnitude(expected) + 1e-6f * largest_of_model;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], tolerance) << name_ << " grad/" << name << " " << i;
    }
  }

  std::string name_;
  Hdf5File file_;
  Batch batch_;
  std::unique_ptr<Sequential> model_;
};

TEST(GoldenTransformers, TrainAndEvaluateAsInPyTorch) {
  for (const std::string& name : golden::models(ModelKind::Transformer)) {
    for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
      GoldenTransformer model(name, *layout);
      model.check_evaluation();
      model.check_gradients();
      model.check_steps();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(GoldenTransformers, GiveTheSameMaskedAndInCsrWithHalfTheirWeights) {
  for (const std::string& name : golden::models(ModelKind::Transformer)) {
    const std::vector<Tensor> whole =
        GoldenTransformer(name, dense_layout()).output_and_gradients();
    const std::vector<Tensor> masked =
        GoldenTransformer(name, masked_layout(), 0.5).output_and_gradients();
    const std::vector<Tensor> csr =
        GoldenTransformer(name, csr_layout(), 0.5).output_and_gradients();
    ASSERT_EQ(csr.size(), masked.size()) << name;
    EXPECT_NE(whole[0].to_vector(), masked[0].to_vector()) << name;
    float largest = 0.0f;
    for (const Tensor& array : masked) {
      largest = std::max(largest, largest_magnitude(array.to_vector()));
    }
    for (size_t i = 0; i < csr.size(); ++i) {
      const std::vector<float> expected = masked[i].to_vector(), found = csr[i].to_vector();
      const float tolerance = 1e-4f * largest_magnitude(expected) + 1e-6f * largest;
      ASSERT_EQ(found.size(), expected.size()) << name << " " << i;
      for (size_t j = 0; j < found.size(); ++j) {
        ASSERT_NEAR(found[j], expected[j], tolerance) << name << " array " << i << " at " << j;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::transformer_test
