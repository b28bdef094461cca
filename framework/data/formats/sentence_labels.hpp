// SentenceLabels: what stands for the class of a sentence, an integer or the class's name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// What a text in the place of a label may be. In the first two, a word such as NA is a missing
/// label (is_missing_field), unless a known class has that name.
enum class LabelText {
  Integer,        ///< an integer alone, since a word could be one of the sentence
  IntegerOrName,  ///< either
  Quoted,         ///< either, and any word is a name
  Name,           ///< a name alone, whatever the word
};

/// Reads the labels of one file. The first one decides whether they are integers or names; where
/// names are known, they are these.
class SentenceLabels {
 public:
  /// Integers are in [0, num_labels). `known`: names of the classes in their order, or none.
  /// `label_texts`: what else may stand for each of them, or none.
  SentenceLabels(int64_t num_labels, const std::vector<std::string>& known,
                 const std::vector<std::string>& label_texts = {});

  /// The label that `text` stands for; of names that are not known, by when they came. *Errors:*
  /// DataError that begins with `place`, also where the label is missing.
  int32_t read(std::string_view text, LabelText kind, const std::string& place);

  /// Of names that were found: sorts them and returns the final label for each that `read` gave.
  /// Empty where labels are final.
  std::vector<int32_t> sort_names();
  /// Names of the classes in the order of labels; empty where labels are integers.
  const std::vector<std::string>& names() const { return names_; }

 private:
  int32_t number(std::string_view text, LabelText kind, const std::string& place) const;
  int32_t name(std::string_view text, LabelText kind, const std::string& place);

  int64_t num_labels_;
  bool are_known_, have_texts_;
  std::optional<bool> are_names_;
  std::vector<std::string> names_;
  std::map<std::string, int32_t, std::less<>> label_of_;
};

}  // namespace lacuna
