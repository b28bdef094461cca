// Models with values worth comparing, exported for the tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/onnx/export_onnx.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "random_values.h"
#include "temporary_folder.h"

namespace lacuna::onnx_tests {

/// A model of a description, in evaluation mode. No value is what a layer begins with, and every
/// weight that may be sparse holds a third of its positions, in csr.
inline std::unique_ptr<Sequential> make_model(const std::string& yaml, const Shape& example) {
  register_builtins();
  std::unique_ptr<Sequential> model = build_model(model_layers(parse_yaml(yaml, "model")), example);
  for (const ParameterPtr& parameter : model->parameters()) {
    std::vector<float> values = random_values(parameter->shape().numel(), parameter->name());
    const bool is_matrix = parameter->shape().rank() >= 2;
    for (float& value : values) value = is_matrix ? 0.4f * value : 1.0f + 0.5f * value;
    parameter->assign(Tensor::from(parameter->shape(), values));
    if (parameter->use != WeightUse::Linear && parameter->use != WeightUse::Convolution) continue;
    if (parameter->requires_dense) continue;
    BitMask mask = BitMask::zeros(parameter->shape().numel());
    for (int64_t i = 0; i < mask.size(); i += 3) mask.set(i);
    parameter->set_pattern(Pattern::make(csr_layout(), parameter->shape(), mask));
  }
  for (const auto& [name, buffer] : model->buffers()) {
    std::vector<float> values = random_values(buffer->shape().numel(), name);
    for (float& value : values) value = 1.5f + 0.5f * value;
    *buffer = Tensor::from(buffer->shape(), values);
  }
  model->eval();
  return model;
}

/// A batch of so many examples: of numbers, or of tokens below `vocabulary`, the last of each
/// example masked but for the first example's, and all of the fourth.
inline Batch make_batch(int64_t size, const Shape& example, int64_t vocabulary) {
  Batch batch;
  batch.size = size;
  if (vocabulary == 0) {
    std::vector<int64_t> sizes{size};
    for (int i = 0; i < example.rank(); ++i) sizes.push_back(example[i]);
    batch.inputs = random_tensor(Shape(sizes), "input");
    return batch;
  }
  const int64_t length = example[0];
  std::vector<int64_t> ids, mask, types;
  for (int64_t i = 0; i < size * length; ++i) {
    ids.push_back((i * 7 + i / length * 3) % vocabulary);
    const bool is_there = i / length == 0 || i % length < length - 2;
    mask.push_back(is_there && i / length != 3 ? 1 : 0);
    types.push_back(i % length < length / 2 ? 0 : 1);
  }
  batch.named["input_ids"] = IndexTensor({size, length}, ids);
  batch.named["attention_mask"] = IndexTensor({size, length}, mask);
  batch.named["token_type_ids"] = IndexTensor({size, length}, types);
  return batch;
}

inline Tensor outputs_of(Module& model, const Batch& batch) {
  const NoGrad no_grad;
  return run_model(model, batch).value().to(Order::RowMajor);
}

inline void expect_near(const std::vector<float>& found, const Tensor& expected,
                        const std::string& what) {
  const std::vector<float> values = expected.to_vector();
  ASSERT_EQ(found.size(), values.size()) << what;
  float largest = 1.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], values[i], 1e-4f * largest) << what << " at " << i;
  }
}

}  // namespace lacuna::onnx_tests
