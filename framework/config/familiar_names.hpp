// Words of other frameworks, as they stand in configurations of PyTorch, Keras and Hugging Face,
// and what they are called here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Words that mean the same. Each field is a list of words, separated by spaces. Words of others
/// are compared without case, `_` and `-`, and without a module's name ("torch.nn.ReLU" is "relu").
struct FamiliarName {
  std::string_view ours;         ///< keys or names; the first that fits a place is suggested there
  std::string_view theirs = "";  ///< what others call it
  std::string_view key = "";     ///< dotted, where it is one key alone: "optimizer.lr"
  std::string_view note = "";    ///< a sentence on what differs; alone, where `ours` is empty
  std::string_view among = "";   ///< for a note alone: a place that has one of these
};

/// The table.
const std::vector<FamiliarName>& familiar_names();

/// Whether others call `ours` by this name.
bool is_familiar(std::string_view name, std::string_view ours);

/// "did you mean 'kernel'?" for the name of others for one of `candidates`, with what differs; or
/// what to do without it, if the candidates show which key is meant. Empty for all other names.
std::string suggest_familiar(std::string_view name, std::span<const std::string> candidates);

/// The dotted key that others, or a user in the wrong section, call so: "optimizer.lr" for
/// learning_rate. Empty for all other names.
std::string familiar_key(std::string_view name);

/// For an unknown key of the map at the dotted path `parent` ("" for sections): the name that was
/// meant among those that the map may have, else the key elsewhere, else the nearest name, else the
/// valid ones.
std::string suggest_key(std::string_view name, std::string_view parent,
                        std::span<const std::string> candidates);

}  // namespace lacuna
