#include "lacuna/framework/train/unknown_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {
namespace {

struct TokenCounts {
  int64_t unknown = 0, tokens = 0;
};

void count_tokens(const Batch& batch, int64_t unknown, TokenCounts& counts) {
  const auto ids = batch.named.find("input_ids"), mask = batch.named.find("attention_mask");
  if (ids == batch.named.end()) return;
  const bool has_mask = mask != batch.named.end();
  for (int64_t i = 0; i < ids->second.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (has_mask && mask->second.values()[at] == 0) continue;
    ++counts.tokens;
    counts.unknown += ids->second.values()[at] == unknown ? 1 : 0;
  }
}

}  // namespace

double share_of_unknown(const Dataset& data) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr int64_t kMostTokens = int64_t{1} << 22, kAtOnce = 256;
  const std::shared_ptr<const Tokenizer> tokenizer = data.tokenizer();
  const auto unknown = tokenizer != nullptr ? tokenizer->find("[UNK]") : std::nullopt;
  if (!unknown || data.size() == 0) return kNone;
  if (const double known = data.unknown_labels(); !std::isnan(known)) return known;
  const int64_t length = std::max<int64_t>(1, data.example_shape().numel());
  const int64_t examples = std::min(data.size(), std::max<int64_t>(1, kMostTokens / length));
  TokenCounts counts;
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < examples; ++i) {
    indices.push_back(evenly_spread(i, examples, data.size()));
    if (i + 1 < examples && static_cast<int64_t>(indices.size()) < kAtOnce) continue;
    count_tokens(data.gather(indices), *unknown, counts);
    indices.clear();
  }
  if (counts.tokens == 0) return kNone;
  return static_cast<double>(counts.unknown) / static_cast<double>(counts.tokens);
}

}  // namespace lacuna
