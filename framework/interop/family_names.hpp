// FamilyNames: a file's arrays under the names that a family of models gives them, and the section
// `model` that follows from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/interop/found_model.hpp"
#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {

class FamilyNames {
 public:
  /// *Lifetime:* `stored` outlives it.
  FamilyNames(const StoredValues& stored, std::string folder)
      : stored_(stored), folder_(std::move(folder)) {}

  /// Looks for an array, alone or behind the family's prefix and what wraps models (`module.`);
  /// whether it is there. Names are then those behind these.
  bool has_anchor(std::string_view anchor, std::string_view prefix);

  /// Shape of an array of the trunk, behind the prefix; nothing if there is none of that rank.
  std::optional<Shape> trunk(const std::string& name, int rank) const;
  /// The same of a head, which has no prefix.
  std::optional<Shape> head(const std::string& name, int rank) const;
  bool has_trunk(const std::string& name) const;
  bool has_head(const std::string& name) const;
  /// Layers `stem`.0 to `stem`.(n − 1), n of them; 0 where one has an array that is not `known`.
  int64_t count_layers(const std::string& stem, std::span<const std::string_view> known) const;
  /// Whether the values of a head's array are those of one in the trunk. *Errors:* CheckpointError.
  bool are_equal(const std::string& head, const std::string& trunk) const;

  /// Entries of `init_from`: what is left out, or keeps its drawn values, and what is renamed.
  void skip_trunk(const std::string& glob) { skip_.push_back(prefix_ + glob); }
  void skip(const std::string& glob) { skip_.push_back(glob); }
  void rename(const std::string& from, const std::string& to) { renames_.emplace_back(from, to); }

  /// Whether the folder has a file of that name.
  bool has_file(const char* name) const;
  /// Its path as YAML, or FILL_IN.
  std::string path_of(const char* name) const;
  /// Names of the classes in a config.json next to the weights, where they have some, in order.
  std::vector<std::string> label_names() const;
  /// Whether the vocabulary next to the weights is of words with capitals.
  bool is_cased() const;
  /// The section: `type` and `keys`, or where config.json of that family stands next to the weights
  /// `from_hf`; then `more` and what loading needs.
  std::string section(const std::string& type, const std::string& keys,
                      const std::string& more) const;

 private:
  std::optional<Shape> shape_of(const std::string& name, int rank) const;
  Config json(const char* name) const;
  bool has_config_json(const std::string& type) const;

  const StoredValues& stored_;
  std::string folder_;
  std::string wrapper_, prefix_;
  std::vector<std::string> skip_;
  std::vector<std::pair<std::string, std::string>> renames_;
};

/// Behind a value that no file of weights holds.
inline constexpr const char* kNotInFile = "   # not in the file: check it";

/// "  name: value\n".
std::string key_line(const char* name, int64_t value, const char* comment = "");
/// The number of heads, which weights do not tell: of 64 features each, as in nearly all models.
std::string heads_line(const char* name, int64_t features);
std::string family_in_words(const char* family, int64_t layers, int64_t features);

std::optional<FoundModel> find_bert(FamilyNames names);
std::optional<FoundModel> find_distilbert(FamilyNames names);
std::optional<FoundModel> find_vit(FamilyNames names);
std::optional<FoundModel> find_gpt2(FamilyNames names);
std::optional<FoundModel> find_llama(FamilyNames names);
std::optional<FoundModel> find_cifar_resnet(FamilyNames names);

}  // namespace lacuna
