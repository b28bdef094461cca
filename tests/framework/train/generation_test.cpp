#include "lacuna/framework/inference/generation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "throws.h"

namespace lacuna::generation_test {
namespace {

using testing::ElementsAre;
using testing::Le;

constexpr int64_t kContext = 12, kVocabulary = 11;

std::unique_ptr<Sequential> language_model(const std::string& position,
                                           const std::string& attention) {
  register_builtins();
  const Config section =
      parse_yaml("- {type: token_embedding, name: wte, vocab_size: 11, features: 16}\n" + position +
                     "- type: residual\n"
                     "  layers:\n"
                     "    - {type: linear, name: qkv, out_features: 32}\n" +
                     attention +
                     "    - {type: linear, name: proj, out_features: 16}\n"
                     "- {type: linear, name: head, out_features: 11}\n",
                 "m.yaml");
  auto model = build_model(model_layers(section), Shape{kContext});
  model->initialize(3);
  return model;
}

const char* const kPositions = "- {type: position_embedding, name: wpe, positions: 12}\n";
// Four heads of queries, two of keys and values, four features each.
const char* const kAttention = "    - {type: attention, heads: 4, kv_heads: 2, causal: true}\n";
const char* const kRotary = "    - {type: rotary, heads: 4, kv_heads: 2}\n";

// What comes of reading the whole text anew for each token.
std::vector<int64_t> without_a_cache(Module& model, std::vector<int64_t> text,
                                     const GenerateOptions& options) {
  const NoGrad no_grad;
  model.eval();
  std::vector<int64_t> added;
  for (int64_t i = 0; i < options.tokens; ++i) {
    const auto count = static_cast<int64_t>(text.size());
    const Tensor logits =
        model(token_ids(IndexTensor(Shape{1, count}, text))).value().to(Order::RowMajor);
    const std::span<const float> last(logits.data() + (count - 1) * kVocabulary, kVocabulary);
    added.push_back(draw_token(last, options, 0.0));
    text.push_back(added.back());
  }
  return added;
}

std::vector<int64_t> generated(Module& model, const std::vector<int64_t>& prompt,
                               const GenerateOptions& options) {
  std::vector<int64_t> added;
  generate(model, prompt, kContext, options, [&](int64_t id) { added.push_back(id); });
  return added;
}

TEST(Generate, GivesWhatReadingTheWholeTextAnewGives) {
  for (const bool rotates : {false, true}) {
    const auto model = rotates ? language_model("", std::string(kRotary) + kAttention)
                               : language_model(kPositions, kAttention);
    for (const std::vector<int64_t>& prompt :
         {std::vector<int64_t>{4}, std::vector<int64_t>{1, 7, 2, 10}}) {
      const GenerateOptions options{.tokens = kContext - static_cast<int64_t>(prompt.size()),
                                    .temperature = 0.0};
      EXPECT_EQ(generated(*model, prompt, options), without_a_cache(*model, prompt, options));
    }
  }
}

TEST(Generate, GoesOnWhereTheContextIsFull) {
  const auto model = language_model(kPositions, kAttention);
  EXPECT_EQ(generated(*model, std::vector<int64_t>(40, 1), {.tokens = 50}).size(), 50u);
}

TEST(Generate, DrawsTheSameForTheSameSeed) {
  const auto model = language_model(kPositions, kAttention);
  const auto with = [&](uint64_t seed) {
    return generated(*model, {1}, {.tokens = 30, .temperature = 5.0, .seed = seed});
  };
  EXPECT_EQ(with(1), with(1));
  EXPECT_NE(with(1), with(2));
}

TEST(Generate, SaysWhatItCannotDo) {
  const auto model = language_model(kPositions, kAttention);
  expect_throws<StateError>([&] { generated(*model, {}, {}); }, "the prompt has no token");
  expect_throws<ConfigError>([&] { generated(*model, {1}, {.temperature = -1.0}); },
                             "temperature must be a finite number of at least 0");
  expect_throws<ConfigError>([&] { generated(*model, {1}, {.tokens = -1}); }, "tokens must be");
  expect_throws<ConfigError>([&] { generated(*model, {1}, {.tokens = kMostGeneratedTokens + 1}); },
                             "tokens must be at most 1000000000, found 1000000001");
  expect_throws<ConfigError>([&] { generated(*model, {1}, {.top_k = -1}); }, "top_k must be");
  const auto looks_ahead =
      language_model(kPositions, "    - {type: attention, heads: 4, kv_heads: 2}\n");
  expect_throws<StateError>([&] { generated(*looks_ahead, {1}, {}); },
                            "only where attention is causal");
}

TEST(DrawToken, TakesTheShareThatTheNumberFallsInto) {
  const std::vector<float> logits{std::log(1.0f), std::log(6.0f), std::log(3.0f)};
  const auto draw = [&](const GenerateOptions& options, double uniform) {
    return draw_token(logits, options, uniform);
  };
  EXPECT_THAT((std::vector{draw({}, 0.0), draw({}, 0.59), draw({}, 0.61), draw({}, 0.89),
                           draw({}, 0.91), draw({}, 0.999999)}),
              ElementsAre(1, 1, 2, 2, 0, 0));
  EXPECT_EQ(draw({.top_k = 2}, 0.66), 1);
  EXPECT_EQ(draw({.top_k = 2}, 0.999999), 2);
  EXPECT_EQ(draw({.temperature = 0.0}, 0.999), 1);
  // 1 : 36 : 9.
  EXPECT_EQ(draw({.temperature = 0.5}, 0.78), 1);
  EXPECT_EQ(draw({.temperature = 0.5}, 0.79), 2);
}

}  // namespace
}  // namespace lacuna::generation_test
