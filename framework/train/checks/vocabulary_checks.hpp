// What the data of a run and its model must know of tokens alike.
#pragma once

#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// Whether the data's tokens mean what a model learned: of other tokens the same ids would be other
/// text. Where one of the two is no text there is nothing to compare. *Cost:* both written as JSON.
bool has_same_vocabulary(const Dataset& data, const TokenizerPtr& learned);

/// For a run that goes on. *Errors:* CheckpointError "the data has a different vocabulary …".
void require_learned_vocabulary(const Dataset& data, const TokenizerPtr& learned);

/// *Errors:* ConfigError "the teacher was trained on text with another vocabulary than the data's".
void require_teachers_vocabulary(const Dataset& data, const TokenizerPtr& learned);

/// *Errors:* ConfigError, at the model's section, where a token_embedding has fewer rows than the
/// data has ids (training would come upon the first of those some time), a token_type_embedding
/// fewer types, or a layer asks for integers by a name that the data's batches do not have.
void require_tokens_fit(const Config& section, const Module& model, const Dataset& data);

}  // namespace lacuna
