// Continuing a text, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

constexpr int64_t kMostGeneratedTokens = 1'000'000'000;

struct GenerateOptions {
  int64_t tokens = 200;             ///< how many follow the prompt, from 0 to kMostGeneratedTokens
  double temperature = 1.0;         ///< logits are divided by it; 0: always the likeliest token
  int64_t top_k = 0;                ///< draws from so many of the likeliest tokens; 0: from all
  uint64_t seed = 0;                ///< of the draws: the same seed gives the same text
  std::vector<int64_t> never = {};  ///< tokens that are never drawn, as [UNK]; not all there are
  int64_t vocabulary = 0;  ///< tokens that there are, of a model that may have more logits; 0: all
};

/// Runs a language model, in evaluation mode, on the prompt and then on each token that was drawn,
/// and calls `emit` with every new one. Layers keep what they have seen (nn/decoding.h), so that a
/// token costs what one token costs. `context` is the most that the model sees at once: when it is
/// full, the model reads its later half again; of a longer prompt it sees the end.
/// *Shapes:* model [1, T] ids → [1, T, vocabulary]. *Errors:* ConfigError on options out of range;
/// StateError on an empty prompt, and where the model's attention is not causal; DataError when a
/// logit is NaN.
void generate(Module& model, std::span<const int64_t> prompt, int64_t context,
              const GenerateOptions& options, const std::function<void(int64_t id)>& emit);

/// The token that is drawn from the logits with a number in [0, 1). Of equal logits the first come
/// first. *Requires* logits, and options in range.
int64_t draw_token(std::span<const float> logits, const GenerateOptions& options, double uniform);

}  // namespace lacuna
