// NamedInputs: gives modules the integers of a batch that accompany its tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lacuna/framework/config/named_tensors.h"

namespace lacuna {

class Module;

/// The names of a batch's tokens, the mask of its padding, and the types of the tokens.
inline constexpr const char* kInputIds = "input_ids";
inline constexpr const char* kAttentionMask = "attention_mask";
inline constexpr const char* kTokenTypes = "token_type_ids";
/// The positions of the tokens to predict, if no other outputs are needed: [n], ascending, among a
/// batch's tokens, one example after the other.
inline constexpr const char* kLabelledTokens = "labelled_tokens";

/// While it exists, modules that run in this thread find these tensors by name: the mask of a
/// batch, the types of its tokens. Only the innermost scope counts; its end restores the outer one.
class NamedInputs {
 public:
  /// *Lifetime:* `tensors` outlives the scope.
  explicit NamedInputs(const NamedTensors& tensors);
  ~NamedInputs();
  NamedInputs(const NamedInputs&) = delete;
  NamedInputs& operator=(const NamedInputs&) = delete;

 private:
  const NamedTensors* saved_;
};

/// Integers of a batch that a layer needs.
struct RequestedInput {
  std::string name;            ///< empty: none
  std::string usual;           ///< the name that a batch may lack; any other name must be in it
  bool is_needed = true;       ///< false if the layer's result is the same without them
  int64_t below = 0;           ///< the integers are below it; 0: any
  std::string below_key = {};  ///< the layer's key for that bound
};

/// An additional base class of layers that need integers of a batch, so that the data can be
/// checked.
class NamedInputUser {
 public:
  virtual ~NamedInputUser() = default;
  virtual RequestedInput requested_input() const = 0;
};

/// The tensor of that name in the innermost scope of this thread; null if there is none.
/// *Lifetime:* the scope's.
const IndexTensor* named_input(std::string_view name);

/// The same for a layer whose key names its input; null for an empty name. A batch may lack the
/// `usual` one; any other name must be in it, if there is a scope. *Errors:* DataError with the
/// names that the batch has.
const IndexTensor* named_input(const Module& layer, const std::string& name,
                               std::string_view usual);

}  // namespace lacuna
