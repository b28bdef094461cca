// What the names and shapes of a file's arrays tell of the model that they are of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {

/// A model, as lines of YAML that end in '\n'. What the file does not tell is marked by a comment.
struct FoundModel {
  std::string what;       ///< "a bert of 12 layers and 768 features"
  std::string data;       ///< the section's entries, indented by two; FILL_IN stands for paths
  std::string model;      ///< the same of `model`
  std::string loss = {};  ///< "loss: …", or nothing
};

/// Stands for what only the user knows.
inline constexpr const char* kFillIn = "FILL_IN";

/// A family that there is a preset for, known by its parameters' names. `folder`: where config.json
/// and vocabularies may lie. *Errors:* CheckpointError where a head must be compared with what it
/// may be tied to, and cannot be read.
std::optional<FoundModel> find_family(const StoredValues& stored, const std::string& folder);

/// Linear and convolution layers with their norms, one after the other, ordered by their names, or
/// where these do not fit by their sizes.
struct FoundStack {
  std::optional<FoundModel> model;
  std::string reason = {};  ///< why there is none
};
FoundStack find_stack(const StoredValues& stored);

/// A line for each array, or for several of one shape whose names differ in digits alone:
/// "layer.0.weight [64, 64], and 11 more like it". Of more than `most` lines the rest is counted.
std::vector<std::string> list_arrays(const StoredValues& stored, size_t most);

}  // namespace lacuna
