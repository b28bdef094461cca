// What files of others call what a model calls otherwise, and store otherwise.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The name among `known` that a file's name means where it is not there itself: with or without a
/// prefix of Hugging Face's families (`transformer.`, `bert.`, `distilbert.`, `vit.`, `model.`),
/// with `weight` and `bias` for a norm's old `gamma` and `beta`, and
/// `cls.predictions.decoder.bias` for `cls.predictions.bias`.
std::optional<std::string> foreign_name(const std::string& name,
                                        const std::set<std::string>& known);

/// What Hugging Face's files call a preset's parameter: its own name, but for the bias of BERT's
/// decoder, `cls.predictions.bias`.
std::string hugging_face_name(const std::string& name);

/// Whether a file may have it next to weights, of no use here: counters, and arrays that follow
/// from the sizes, as GPT-2's `attn.bias` [1, 1, n, n], which is no bias.
bool is_bookkeeping(std::string_view name, int rank);

/// Whether it is the weight of a layer that GPT-2 calls Conv1D, whose files have it [in, out].
bool is_conv1d_weight(std::string_view name);

/// A matrix with rows and columns exchanged. *Cost:* one pass over it.
Tensor transposed(const Tensor& matrix);
ByteArray transposed(const ByteArray& matrix);

}  // namespace lacuna
