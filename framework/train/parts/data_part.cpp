// The data of an experiment.
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {
namespace {

// Unknown keys are reported before files that are missing, so that both can be corrected in one go.
DataSplits load_data_of(const Config& config, uint64_t seed) {
  try {
    return load_data(config.at("data"), seed);
  } catch (const DataError&) {
    require_known_data_keys(config.at("data"));
    require_known_keys(config, seed);
    throw;
  }
}

void build_data(ExperimentBuild& b) {
  DataSplits& data = b.e.data;
  if (b.read_before != nullptr) {
    data = *b.read_before;
    b.e.config.at("data").mark_read();
  } else {
    data = load_data_of(b.e.config, b.e.train.seed);
  }
  if (b.check_data) b.check_data(data);
  b.origins.data = data.hashes;
  b.origins.train_size = data.train->size();
  b.origins.columns = {
      .inputs = data.columns, .label = data.label_column, .categories = data.categories};
}

// Only models that predict the next token can continue a prompt.
void check_sample(const Experiment& e) {
  const Config key = e.config.get("train").get("sample");
  const auto tokenizer = e.data.train->tokenizer();
  if (tokenizer == nullptr || e.data.train->token_label() != TokenLabel::Next) {
    key.error(
        "this is for language models: for data of type text whose labels are the next tokens");
  }
  const Config sparsify = e.config.get("sparsifiers");
  if (!sparsify.is_null() && !sparsify.items().empty()) {
    key.error("this cannot be combined with `sparsifiers`, whose random draws it would change");
  }
  const Config prompt = key.at("prompt");
  bool is_empty = false;
  try {
    is_empty = tokenizer->encode(e.train.sample->prompt).empty();
  } catch (const DataError& unknown) {
    prompt.error(unknown.what());
  }
  if (is_empty) prompt.error("the prompt has no token of the vocabulary");
}

// early_stopping and keep_best judge a model by held-out data, so they need some.
void check_data(ExperimentBuild& b) {
  if (b.e.train.sample) check_sample(b.e);
  const TrainOptions& options = b.e.train;
  const bool is_needed = options.checkpoint.keep_best || options.early_stopping;
  if (!is_needed || b.e.data.validation != nullptr) return;
  const Config train = b.e.config.get("train");
  const Config key = options.early_stopping ? train.get("early_stopping")
                                            : train.get("checkpoint").get("keep_best");
  key.error(
      "this needs a validation split, and there is none; hold one out with data.validation (a "
      "fraction such as 0.1, or a number of examples)");
}

}  // namespace

ExperimentPart data_part() { return {.build = build_data, .check = check_data}; }

}  // namespace lacuna
