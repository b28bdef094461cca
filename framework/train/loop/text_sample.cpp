#include "lacuna/framework/train/loop/text_sample.hpp"

#include <vector>

#include "lacuna/framework/inference/generation.hpp"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

std::string sample_text(const Experiment& e) {
  const SampleOptions& options = *e.train.sample;
  const Dataset& data = *e.data.train;
  const auto tokenizer = data.tokenizer();
  const auto averaged = e.average ? e.average->show() : nullptr;
  std::vector<int64_t> ids = tokenizer->encode(options.prompt);
  std::vector<int64_t> text = ids;
  std::vector<int64_t> never;
  if (const auto unknown = tokenizer->find("[UNK]")) never.push_back(*unknown);
  generate(*e.model, ids, data.example_shape()[0],
           {.tokens = options.tokens, .never = never, .vocabulary = tokenizer->vocabulary_size()},
           [&](int64_t id) { text.push_back(id); });
  return tokenizer->decode(text);
}

}  // namespace lacuna
