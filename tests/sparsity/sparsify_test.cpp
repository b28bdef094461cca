// Sparsifiers, and the list `sparsify`: masks of activations, gradients and weights.
#include "lacuna/sparsity/sparsify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/sparsity/semi_sparse.h"
#include "random_values.h"
#include "test_model.h"

namespace lacuna::sparsify_test {
namespace {

struct SparsifierCase {
  const char* config;
  int64_t kept;  // of 8x8 different values
};

class Sparsifiers : public testing::TestWithParam<SparsifierCase> {};

TEST_P(Sparsifiers, KeepWhatTheySay) {
  register_builtins();
  const SparsifierPtr s = make_sparsifier(parse_yaml(GetParam().config, "c.yaml"), 3);
  Tensor x = Tensor::empty(Shape{2, 4, 8});
  for (int64_t i = 0; i < 64; ++i) {
    x.mutable_data()[i] = static_cast<float>((i * 37 + 11) % 64) - 31.5f;
  }
  const BitMask mask = s->keep(x, "x");
  EXPECT_EQ(mask.size(), 64);
  EXPECT_EQ(mask.count(), GetParam().kept);
  EXPECT_EQ(mask, s->keep(x, "x"));
}

INSTANTIATE_TEST_SUITE_P(
    All, Sparsifiers,
    testing::Values(SparsifierCase{"keep_all", 64},
                    SparsifierCase{"{type: scalar_threshold, threshold: 30.5}", 4},
                    SparsifierCase{"{type: scalar_fraction, fraction: 0.75}", 16},
                    SparsifierCase{"{type: nm, n: 2, m: 4}", 32},
                    SparsifierCase{"{type: nm, n: 1, m: 8}", 8},
                    SparsifierCase{"{type: block_fraction, fraction: 0.5, rows: 4, cols: 2}", 32},
                    SparsifierCase{"{type: random_fraction, fraction: 1.0}", 0}));

TEST(Sparsify, ReachesTheTensorsOfLayersByGlob) {
  register_builtins();
  TestModel model;
  sparsify_activations(
      model.model,
      sparsify_from_config(parse_yaml("[{tensor: 'relu*.output', sparsifier: {type: nm, n: 2, m: "
                                      "4}}, {tensor: fc1.output.grad, sparsifier: {type: "
                                      "scalar_fraction, fraction: 1.0}}]",
                                      "c.yaml"),
                           0));
  const Variable y = model.model(Variable(model.x));
  backward(cross_entropy(y, model.labels));
  // Nothing of the gradient comes through to fc1; fc2 saw 2 of 4 activations at most.
  for (const float g : model.weight().gradient().to_vector()) EXPECT_EQ(g, 0.0f);
  float largest = 0.0f;
  for (const float g : model.weight("fc2.weight").gradient().to_vector()) {
    largest = std::max(largest, std::abs(g));
  }
  EXPECT_GT(largest, 0.0f);
}

// Small integers: many are equal, many are zero.
Tensor with_equal_ones() {
  Tensor x = Tensor::empty(Shape{3, 5, 48});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data()[i] = static_cast<float>((i * i * 37 + i) % 7 - 3);
  }
  return x;
}

TEST(Sparsify, NmActivationsAreSelectedAsTheSparsifierSays) {
  register_builtins();
  for (const char* config : {"{type: nm, n: 2, m: 4}", "{type: nm, n: 1, m: 8}",
                             "{type: nm, n: 3, m: 8}", "{type: nm, n: 4, m: 16}"}) {
    const SparsifierPtr s = make_sparsifier(parse_yaml(config, "c.yaml"), 3);
    ASSERT_TRUE(s->as_nm().has_value()) << config;
    const Tensor x = with_equal_ones();
    const Variable in = Variable::leaf(x);
    backward(keep_nm(in, s->as_nm()->n(), s->as_nm()->m()), Tensor::full(x.shape(), 1.0f));
    const BitMask mask = s->keep(x, "x");  // kept zeros show in the gradient alone
    for (int64_t i = 0; i < x.numel(); ++i) {
      ASSERT_EQ(in.gradient().data()[i], mask.test(i) ? 1.0f : 0.0f) << config << " at " << i;
    }
  }
  for (const char* config : {"keep_all", "{type: nm, n: 2, m: 4, transposable: true}",
                             "{type: nm, n: 2, m: 4, group: 8}"}) {
    EXPECT_FALSE(make_sparsifier(parse_yaml(config, "c.yaml"), 3)->as_nm()) << config;
  }
}

// What looks at more than one element sees the channels of images as their features.
TEST(Sparsify, GroupsOfImagesAreOfChannels) {
  register_builtins();
  constexpr int64_t kBatch = 2, kChannels = 8, kPixels = 3 * 5;
  const Tensor x = random_tensor(Shape{kBatch, kChannels, 3, 5}, "x");
  const auto sparsified = [&](const std::string& tensor, const std::string& sparsifier) {
    Sequential model;
    model.add<LeakyReLU>("act", {.negative_slope = 1.0f});
    sparsify_activations(
        model,
        sparsify_from_config(
            parse_yaml("[{tensor: " + tensor + ", sparsifier: " + sparsifier + "}]", "c"), 0));
    const Variable in = Variable::leaf(x);
    const Variable y = model(in);
    if (!tensor.ends_with(".grad")) return y.value();
    backward(y, x);
    return in.gradient();
  };
  const auto kept_at_pixels = [&](const Tensor& y, int64_t channels, int64_t kept) {
    for (int64_t image = 0; image < kBatch; ++image) {
      for (int64_t first = 0; first < kChannels; first += channels) {
        for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
          int64_t found = 0;
          for (int64_t c = first; c < first + channels; ++c) {
            found += y.data()[(image * kChannels + c) * kPixels + pixel] != 0.0f ? 1 : 0;
          }
          ASSERT_EQ(found, kept) << "image " << image << ", channel " << first << ", pixel "
                                 << pixel;
        }
      }
    }
  };
  for (const char* tensor : {"act.input", "act.output", "act.output.grad"}) {
    SCOPED_TRACE(tensor);
    kept_at_pixels(sparsified(tensor, "{type: nm, n: 1, m: 4}"), 4, 1);
    kept_at_pixels(sparsified(tensor, "{type: nm, n: 2, m: 4, group: 6}"), 4, 2);
    const Tensor y = sparsified(tensor, "{type: block_fraction, rows: 5, cols: 8, fraction: 0.5}");
    EXPECT_EQ(std::ranges::count(y.to_vector(), 0.0f), x.numel() / 2);  // rows of whole images
    for (int64_t i = 0; i < kPixels; ++i) {
      EXPECT_EQ(y.data()[i] == 0.0f, y.data()[i / 5 * 5 + kPixels] == 0.0f) << i;
    }
  }
}

TEST(Sparsify, AnInputByNameMakesALinearLayerRunSparseProducts) {
  register_builtins();
  Sequential model;
  model.add<Linear>("fc", {.in_features = 128, .out_features = 128});
  sparsify_activations(
      model,
      sparsify_from_config(
          parse_yaml("[{tensor: fc.input, sparsifier: {type: nm, n: 2, m: 4}}]", "c.yaml"), 0));
  const Variable y = model(Variable(random_tensor(Shape{64, 128}, "x")));
  EXPECT_EQ(y.creator()->name(), "linear_sparse_input");
}

// As SemiSparse does, whose selection is the same.
void expect_as_semi_sparse(const std::string& entry, const SemiSparseOptions& options,
                           const std::string& layout) {
  TestModel model, other;
  const auto entries = sparsify_from_config(parse_yaml("[" + entry + "]", "c.yaml"), 0);
  const auto algorithm = sparsify_weights(entries);
  ASSERT_NE(algorithm, nullptr);
  SemiSparse semi(options);
  model.apply(*algorithm);
  other.apply(semi);
  for (int i = 0; i < 5; ++i) {
    model.step();
    other.step();
  }
  EXPECT_EQ(model.weight().pattern()->layout().name(), layout);
  EXPECT_EQ(whole(model.weight()), whole(other.weight())) << entry;
}

TEST(Sparsify, WeightsFollowTheSparsifier) {
  register_builtins();
  const std::string weights = "{tensor: 'fc*.weight', sparsifier: ";
  const PatternShape nm = PatternShape::nm(2, 4), block = PatternShape::block(4, 2);
  const std::string blocks = "{type: block_fraction, rows: 4, cols: 2, fraction: 0.5}";
  for (const char* every : {"1", "2"}) {
    const std::string end = std::string(", every: ") + every + "}";
    const int64_t steps = every[0] - '0';
    expect_as_semi_sparse(weights + "{type: nm, n: 2, m: 4}, layout: csr" + end,
                          {.pattern = nm, .layout = "csr", .every = steps}, "csr");
    expect_as_semi_sparse(weights + "{type: nm, n: 2, m: 4}, layout: nm" + end,
                          {.pattern = nm, .layout = layout_for(nm), .every = steps}, "nm 2:4");
    expect_as_semi_sparse(weights + blocks + ", layout: block" + end,
                          {.pattern = block,
                           .sparsity = SparsityTarget(0.5),
                           .layout = layout_for(block),
                           .every = steps},
                          block.to_string());
  }
}

TEST(Sparsify, MistakesAreNamed) {
  register_builtins();
  const auto refused = [](const std::string& list, const std::string& says) {
    const auto make = [&] {
      const auto entries = sparsify_from_config(parse_yaml(list, "c.yaml"), 0);
      TestModel model;
      sparsify_activations(model.model, entries);
      model.model(Variable(model.x));
    };
    EXPECT_THAT(make, ThrowsMessage<Error>(testing::HasSubstr(says))) << list;
  };
  refused("[{tensor: fc1, sparsifier: keep_all}]", "'fc1' names no tensor");
  refused("[{tensor: fc7.input, sparsifier: keep_all}]", "did you mean 'fc");
  refused("[{tensor: fc1.input, sparsifier: keep_al}]", "did you mean 'keep_all'");
  refused("[{tensor: fc1.input, sparsifier: {type: scalar_fraction}}]", "fraction");
  refused("[{tensor: fc1.input, sparsifier: {type: scalar_fraction, fraction: 2}}]", "fraction");
  refused("[{tensor: fc1.input, sparsifier: {type: nm, n: 2, m: 5}}]",
          "'fc1.input' of shape [20, 12]");
  refused("[{tensor: fc1.input.grad, sparsifier: {type: nm, n: 2, m: 5}}]",
          "'fc1.input.grad' of shape [20, 12]");  // before there is a gradient
  refused("[{tensor: fc1.input, sparsifier: nm}]", "c.yaml:1:");
  refused("{tensor: fc1.input}", "a list of maps");
}

}  // namespace
}  // namespace lacuna::sparsify_test
