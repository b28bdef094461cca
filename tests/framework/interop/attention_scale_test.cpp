// `model.attention_scale`: what is exported computes the same with the usual scale.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/interop/runs.h"
#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::attention_scale_test {
namespace {

const Shape kTokens{6};

constexpr const char* kNoDropout = ", resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0";

std::string gpt2(const std::string& more) {
  return std::string(
             "{type: gpt2, vocab_size: 11, n_positions: 6, n_embd: 16, n_layer: 2, n_head: 2") +
         kNoDropout + more + "}";
}
std::string llama(const std::string& more) {
  return "{type: llama, vocab_size: 11, hidden_size: 16, intermediate_size: 24, num_hidden_layers: "
         "2, "
         "num_attention_heads: 4, num_key_value_heads: 2" +
         more + "}";
}

std::vector<float> outputs(Sequential& model) {
  model.eval();
  const NoGrad no_gradient;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 12; ++i) ids.push_back(3 * i % 11);
  return model(token_ids(IndexTensor(Shape{2, 6}, ids))).value().to_vector();
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {  // queries are rounded once more
    ASSERT_NEAR(a[i], b[i], 1e-5f * std::max(10.0f, std::abs(b[i]))) << i;
  }
}

class AttentionScale : public testing::Test {
 protected:
  // A run of that model with large queries, one weight of which is sparse.
  std::vector<float> write(const std::string& model_yaml, const std::string& sparse) {
    const auto model = build_from(model_yaml, kTokens);
    model->initialize(3);
    for (const ParameterPtr& parameter : model->parameters()) {
      for (float& value : parameter->mutable_values().mutable_storage()) value *= 10.0f;
    }
    const ParameterPtr weight = model->parameter(sparse);
    BitMask mask = BitMask::zeros(weight->numel());
    for (int64_t i = 0; i < weight->numel(); i += 3) mask.set(i);
    weight->set_pattern(Pattern::make(csr_layout(), weight->shape(), mask));
    write_run(run(), model_yaml, kTokens, *model);
    return outputs(*model);
  }
  std::string run() const { return folder_ / "run.h5"; }

  const TemporaryFolder folder_;
};

TEST_F(AttentionScale, IsFoldedIntoQueries) {
  for (const auto& [family, sparse] :
       {std::pair{&gpt2, "transformer.h.0.attn.c_attn.weight"},
        std::pair{&llama, "model.layers.1.self_attn.q_proj.weight"}}) {
    const std::vector<float> wanted = write(family(", attention_scale: 0.1"), sparse);
    for (const std::string format : {"hf", "safetensors", "npz"}) {
      const std::string path = folder_ / (format == "hf" ? "folder" : "file." + format);
      export_run(run(), path, {.format = format, .overwrite = true});
      const auto plain = build_from(family(""), kTokens);
      load_weights(path, *plain);
      expect_near(outputs(*plain), wanted);
    }
    // The run itself is as it was.
    expect_near(outputs(*load_run(run()).model), wanted);
  }
}

TEST_F(AttentionScale, IsRefusedWhereNoLinearLayerStandsBeforeAttention) {
  const std::string layers =
      "{attention_scale: 0.1, layers: [{type: token_embedding, name: wte, vocab_size: 11, "
      "features: "
      "24}, {type: attention, name: attend, heads: 2, causal: true}, {type: linear, name: fc, "
      "out_features: 11}]}";
  write(layers, "fc.weight");
  expect_throws<ConfigError>([&] { export_run(run(), folder_ / "file.npz", {.format = "npz"}); },
                             "the scale 0.1 of layer 'attend' (attention)");
}

TEST_F(AttentionScale, IsRefusedWhereAnotherLayerSharesTheQueries) {
  const std::string layers =
      "{attention_scale: 0.1, layers: [{type: token_embedding, name: wte, vocab_size: 11, "
      "features: 8}, {type: linear, name: a, out_features: 24}, {type: attention, name: attend, "
      "heads: 2, causal: true}, {type: linear, name: b, tied_to: a}, {type: linear, name: fc, "
      "out_features: 11}]}";
  write(layers, "fc.weight");
  expect_throws<ConfigError>([&] { export_run(run(), folder_ / "file.npz", {.format = "npz"}); },
                             "because no linear layer with weights of its own comes before it");
}

}  // namespace
}  // namespace lacuna::attention_scale_test
