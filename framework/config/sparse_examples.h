// Names of the tensors in which a batch holds sparse examples that have several labels each.
#pragma once

namespace lacuna {

/// The features of each example, [size, most of an example], padded with −1. Their values are the
/// batch's `inputs`, of the same shape.
inline constexpr const char* kFeatureIds = "feature_ids";
/// The labels of each example, [size, most of an example], padded with `kIgnoredLabel`.
inline constexpr const char* kLabelLists = "label_lists";

}  // namespace lacuna
