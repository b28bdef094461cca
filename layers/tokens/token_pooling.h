// Layers that select or pool tokens of a sequence.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

/// Selects one token of each sequence. A negative index counts from the last token whose value in
/// the batch's named input `mask` is not 0, so that padding is ignored. *Shapes:* [batch, T,
/// features] → [batch, features].
class SelectToken final : public Module, public NamedInputUser {
 public:
  struct Options {
    int64_t index = 0;                  ///< negative: from the end
    std::string mask = kAttentionMask;  ///< empty: none, all tokens count
  };

  SelectToken() : SelectToken(Options()) {}
  explicit SelectToken(const Options& options) : options_(options) {}

  std::string_view type() const override { return "select_token"; }
  const Options& options() const { return options_; }
  RequestedInput requested_input() const override {
    return {.name = options_.mask, .usual = kAttentionMask, .is_needed = options_.index < 0};
  }
  Shape output_shape(const Shape& input) const override;

 protected:
  /// *Errors:* DataError if a sequence has no such token; ShapeError with both shapes if an index
  /// counts from the end and the mask belongs to other sequences.
  Variable forward(const Variable& input) override;

 private:
  Variable select_unpadded(const Variable& input, const IndexTensor& mask) const;

  Options options_;
};

/// Selects the tokens that must be predicted, if the batch's named input kLabelledTokens names
/// them; otherwise passes on all tokens. The next layers must work token by token; they then do no
/// work for outputs that no loss uses: the head of a masked language model. *Shapes:* [batch, T,
/// features] → [n, features], or unchanged.
class LabelledTokens final : public Module {
 public:
  std::string_view type() const override { return "labelled_tokens"; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;
};

/// The mean over the tokens whose value in the batch's named input `mask` is not 0, or over all if
/// there is no such input. *Shapes:* [batch, T, features] → [batch, features].
class MeanPool final : public Module, public NamedInputUser {
 public:
  struct Options {
    std::string mask = kAttentionMask;  ///< empty: none
  };

  MeanPool() : MeanPool(Options()) {}
  explicit MeanPool(const Options& options) : options_(options) {}

  std::string_view type() const override { return "mean_pool"; }
  const Options& options() const { return options_; }
  RequestedInput requested_input() const override {
    return {.name = options_.mask, .usual = kAttentionMask};
  }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
