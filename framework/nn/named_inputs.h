// NamedInputs: the integers of a batch in addition to its tokens, where modules find them.
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
/// The places of the tokens that are to be predicted, if no other outputs are needed: [n],
/// of a batch's tokens one example after the other, ascending.
inline constexpr const char* kLabelledTokens = "labelled_tokens";

/// While it lives, modules that run in this thread find these tensors by name: the mask of a batch,
/// the types of its tokens. The innermost scope counts alone; its end restores the one around it.
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

/// Integers of a batch that a layer asks for.
struct RequestedInput {
  std::string name;            ///< empty: none
  std::string usual;           ///< what a batch may be without; any other name must be in it
  bool is_needed = true;       ///< false where the layer gives the same without them
  int64_t below = 0;           ///< the integers are below it; 0: any
  std::string below_key = {};  ///< the layer's key for that bound
};

/// A second base of layers that ask for integers of a batch, so that the data is held against them.
class NamedInputUser {
 public:
  virtual ~NamedInputUser() = default;
  virtual RequestedInput requested_input() const = 0;
};

/// The tensor of that name in the innermost scope of this thread; null if there is none.
/// *Lifetime:* the scope's.
const IndexTensor* named_input(std::string_view name);

/// The same for a layer whose key names its input; null for an empty name. A batch may be without
/// the `usual` one, and any other name must be in it, where a scope has a batch at all. *Errors:*
/// DataError with the names that the batch has.
const IndexTensor* named_input(const Module& layer, const std::string& name,
                               std::string_view usual);

}  // namespace lacuna
