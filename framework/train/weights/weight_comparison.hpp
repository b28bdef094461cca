// WeightComparison: a model and a file's values, put side by side by name; and the way from one to
// the other.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {

/// The first array that holds values that are NaN or infinite; empty where none does.
std::string first_not_finite(const StateDict& state);
/// *Errors:* CheckpointError, from the constructor on, when `stored` holds values that are NaN or
/// infinite, with the file's name.
void require_finite(const StateDict& state, const std::string& path);
/// The same of a `running_var` below 0.
void require_variances(const StateDict& state, const std::string& path);

class WeightComparison {
 public:
  /// Compares names and shapes. *Errors:* CheckpointError that names all that does not fit;
  /// ConfigError about `names`. *Lifetime:* all three must outlive it.
  WeightComparison(Module& model, const StoredValues& stored, const WeightNames& names);

  /// Gives the model the values, all of them or, with an error, none. *Errors:* CheckpointError.
  LoadedWeights load() const;
  /// Those of the values that are int8, by the model's names. *Errors:* CheckpointError.
  std::vector<Int8Weight> int8_weights() const;

 private:
  std::string renamed(const std::string& name) const;
  void find_tied();
  void rename();
  void take(const std::string& name, const std::string& original);
  bool has_conv1d() const;
  bool is_stored_transposed(const std::string& name) const;
  bool is_skipped(const std::string& name) const;
  void compare(const std::string& name, const Shape& shape, bool is_buffer);
  void find_left_over();
  void compare_tied(const std::string& original, const std::string& owner);
  void compare_doubles();
  bool are_equal(const std::string& one, const std::string& other) const;
  void require_skips_match() const;
  void name_nearest();
  void refuse_differences() const;
  StateDict read_values() const;
  PatternPtr pattern_of(const Parameter& parameter, const StateDict& state,
                        LoadedWeights& loaded) const;
  std::string conversions() const;

  Module& model_;
  const StoredValues& stored_;
  const WeightNames& names_;
  bool is_foreign_;                          // not lacuna's own file
  bool stores_conv1d_ = false;               // GPT-2's weights are [in, out] in it
  std::map<std::string, std::string> tied_;  // "lm_head.weight" → its owner's name
  std::vector<std::pair<std::string, std::string>> doubles_;  // two names in the file for one
  std::map<std::string, std::string> in_file_;  // names in the file, by what they are changed to
  std::vector<std::string> in_model_;
  std::vector<std::string> wanted_;                     // in both, and not skipped
  std::vector<std::string> lines_;                      // what does not fit
  std::vector<std::pair<std::string, Shape>> missing_;  // what the file lacks
  std::vector<std::string> left_over_;                  // names that the model lacks
  std::vector<std::string> nearest_;                    // of the first to the second, in words
};

}  // namespace lacuna
