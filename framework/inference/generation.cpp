#include "lacuna/framework/inference/generation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/nn/decoding.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"

namespace lacuna {
namespace {

void require_options(const GenerateOptions& options, int64_t context) {
  if (options.tokens < 0) {
    throw ConfigError(fmt::format("tokens must be at least 0, found {}", options.tokens));
  }
  if (options.tokens > kMostGeneratedTokens) {
    throw ConfigError(
        fmt::format("tokens must be at most {}, found {}", kMostGeneratedTokens, options.tokens));
  }
  if (!(options.temperature >= 0.0 && std::isfinite(options.temperature))) {
    throw ConfigError(fmt::format("temperature must be a finite number of at least 0, found {}",
                                  options.temperature));
  }
  if (options.top_k < 0) {
    throw ConfigError(fmt::format("top_k must be at least 0, found {}", options.top_k));
  }
  if (context < 1)
    throw ConfigError(fmt::format("the context must be at least 1, found {}", context));
}

// The logits of what follows the tokens.
std::vector<float> next_logits(Module& model, std::span<const int64_t> ids, DecodingCache& cache) {
  const auto count = static_cast<int64_t>(ids.size());
  const Variable output =
      model(token_ids(IndexTensor(Shape{1, count}, std::vector<int64_t>(ids.begin(), ids.end()))));
  cache.advance(count);
  const Tensor rows = output.value().to(Order::RowMajor);
  if (rows.shape().rank() != 3 || rows.shape()[1] != count) {
    throw StateError(
        fmt::format("generating text needs a model that returns logits for each token, [1, {}, "
                    "vocabulary]; this one returns {}",
                    count, rows.shape().to_string()));
  }
  const float* last = rows.data() + (count - 1) * rows.shape()[2];
  std::vector<float> logits(last, last + rows.shape()[2]);
  if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); })) {
    throw DataError("the model's logits are NaN");
  }
  return logits;
}

}  // namespace

int64_t draw_token(std::span<const float> logits, const GenerateOptions& options, double uniform) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.temperature == 0.0) return order.front();
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size())) {
    order.resize(static_cast<size_t>(options.top_k));
  }
  const double largest = logits[static_cast<size_t>(order.front())];
  std::vector<double> sums;
  double total = 0.0;
  for (const int64_t id : order) {
    total += std::exp((logits[static_cast<size_t>(id)] - largest) / options.temperature);
    sums.push_back(total);
  }
  const auto found = std::ranges::upper_bound(sums, uniform * total) - sums.begin();
  return order[std::min(static_cast<size_t>(found), order.size() - 1)];
}

void generate(Module& model, std::span<const int64_t> prompt, int64_t context,
              const GenerateOptions& options, const std::function<void(int64_t id)>& emit) {
  require_options(options, context);
  if (prompt.empty()) throw StateError("the prompt has no token to continue from");
  const EvaluationMode mode(model);
  DecodingCache cache;
  const Decoding decoding(cache);
  const CounterRng rng(options.seed, "generate");
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  const auto end_of_text = [&](int64_t most) {
    const auto count = std::min(static_cast<size_t>(most), text.size());
    return std::span<const int64_t>(text).last(count);
  };
  std::span<const int64_t> unread = end_of_text(context);
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (cache.length() + static_cast<int64_t>(unread.size()) > context) {
      cache.clear();
      unread = end_of_text(std::max<int64_t>(1, context / 2));
    }
    std::vector<float> logits = next_logits(model, unread, cache);
    if (options.vocabulary > 0 && options.vocabulary < static_cast<int64_t>(logits.size())) {
      logits.resize(static_cast<size_t>(options.vocabulary));
    }
    for (const int64_t id : options.never) {
      logits.at(static_cast<size_t>(id)) = -std::numeric_limits<float>::infinity();
    }
    text.push_back(draw_token(logits, options, rng.uniform(static_cast<uint64_t>(i))));
    unread = end_of_text(1);
    emit(text.back());
  }
}

}  // namespace lacuna
