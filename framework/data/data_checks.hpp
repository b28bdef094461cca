// Whether the data is what was meant: where it is, its classes, and the keys that go with its kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Returns load(), which reads what the paths of a data section, under these keys, lead to. A path
/// that is empty is refused before (ConfigError), and an error about one with nothing there tells
/// its place in the configuration (DataError).
DataSplits with_named_paths(const Config& data, const std::vector<std::string>& keys,
                            const std::function<DataSplits()>& load);

/// The file that a key names, where it names one: data.validation and data.test may be numbers
/// instead, of examples to hold out. *Errors:* ConfigError on a list or a map.
std::optional<std::string> path_of_split(const Config& data, const std::string& key);

/// Tokens are neither normalized nor augmented. *Errors:* ConfigError.
void require_no_image_keys(const Config& data, const Dataset& train);

/// Numbers that are to be predicted, and not classes: of most of these there is no example.
/// *Errors:* ConfigError.
void require_plausible_labels(const Config& data, const Dataset& train);

/// Labels below the largest that no example has: a warning names them, and what can be done, with
/// `more` at its end. Nothing if num_classes is given, or the classes have names. *Cost:* a look at
/// each label.
void report_label_gaps(const Config& data, std::span<const int64_t> labels, int64_t num_classes,
                       const std::string& more = "");

/// `num_classes` is the data's number of classes, unless it may choose. *Errors:* ConfigError.
void require_number_of_classes(const Config& data, const Dataset& train);

/// Examples in the order of their classes lose whole classes by a limit: a warning names these.
/// `staying` are the indices that are trained on. *Cost:* a look at each label.
void report_lost_classes(const Config& data, const Dataset& train,
                         std::span<const int64_t> staying);

/// The hashes of the splits that a factory has made, of the training examples up to data.limit.
SplitHashes hash_splits(const Config& data, const DataSplits& splits);

}  // namespace lacuna
