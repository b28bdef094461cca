// Makes the splits that a run is trained and evaluated on from the `data` section of a
// configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/registry.h"
#include "lacuna/framework/data/changes/augment.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/sampling.h"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// How missing inputs are filled in.
enum class Missing {
  None,    ///< none are
  Mean,    ///< the mean of the training examples
  Median,  ///< their median
  Given,   ///< given numbers
};

/// The data of a run.
struct DataSplits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;  ///< null: none was held out
  std::shared_ptr<const Dataset> test;        ///< null: no such split
  /// The normalization that load_data applied to each ArrayDataset; predictions apply it to new
  /// inputs.
  Normalization normalization;
  /// Only for the loader of the training split.
  AugmentOptions augment = {};
  Sampling sampling = Sampling::Once;
  /// Whether the factory has read data.validation and data.test and held these splits out;
  /// load_data then does not. Text is held out at its end, not at random.
  bool is_held_out = false;
  /// For a table whose first line names the columns: the names of the inputs, in order, and of the
  /// label or target.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  /// For columns of text: the names of their categories, each of which is a feature.
  std::map<std::string, std::vector<std::string>> categories = {};
  /// How inputs that are NaN are filled in, with one value for each feature. A factory sets the
  /// values that are not measured; load_data measures the others.
  Missing missing = Missing::None;
  std::vector<double> fill = {};
  /// How targets were scaled (data.normalize_targets): each became (target − mean) / std. One value
  /// for each output; empty if they were not scaled.
  std::vector<double> target_mean = {}, target_std = {};
  /// Hashes of the training examples that data.limit leaves, including those held out, and of the
  /// splits that are not held out of these, before normalization. Set by load_data and
  /// load_held_out.
  SplitHashes hashes = {};
};

/// Facts about the training data that are stored with a model.
struct KnownData {
  int64_t num_classes = 0;  ///< 0: regression
  std::vector<std::string> class_names = {};
  TokenizerPtr tokenizer = nullptr;       ///< of text
  std::vector<std::string> columns = {};  ///< of a table's inputs, if its first line names them
  std::string label_column = {};
  Shape example_shape = {};  ///< that the model was trained on
  std::map<std::string, std::vector<std::string>> categories = {};  ///< as DataSplits has them
  std::vector<double> fill = {};
};

/// A dataset that `data.type` can name. Only `load` is required; without the other members,
/// commands use the behaviour for data of no particular kind, or none.
struct DatasetType {
  /// The splits of a `data` section. `seed` is the run's.
  std::function<DataSplits(const Config& data, uint64_t seed)> load;

  /// Keys of `data` that name files or folders, those of the training examples first. A run finds
  /// them from any working directory, and a resumed run may be given others.
  std::vector<std::string> paths = {};
  /// Whether the files of the training examples exist. Default: the first of `paths` exists, or
  /// that key is absent.
  std::function<bool(const Config& data)> has_training_files = {};
  /// The splits that have their own files, without reading the files of the training examples:
  /// `lacuna eval` uses them if those are missing. Default: there are none.
  std::function<DataSplits(const Config& data, uint64_t seed, const KnownData& known)>
      load_held_out = {};
  /// The examples in a file (or folder) of this type's own kind, to predict from; nothing for other
  /// files, of which tables, images and IDX files are read for every type.
  std::function<std::optional<Examples>(const std::string& path, const Config& data,
                                        const KnownData& known)>
      read_inputs = {};
  /// Dotted keys that decide which of the training examples are held out. data.test is one where a
  /// number holds a test split out, too: load_data does so, unless DataSplits::is_held_out.
  std::vector<std::string> split_keys = {"data.validation", "train.seed", "data.limit"};
  /// Keys that `load` reads only after it has read files: a key that neither it nor load_data knows
  /// is then reported before missing files are. Default: unknown.
  std::optional<std::vector<std::string>> late_keys = {};
  /// Keys that a new run's configuration states if they are absent, because their absence means
  /// something else in earlier runs; `lacuna prune` keeps the keys of its run.
  std::vector<std::pair<std::string, std::string>> new_run_keys = {};
};

/// DatasetType::split_keys with data.test among them.
std::vector<std::string> split_keys_with_test();

using DatasetRegistry = Registry<DatasetType>;
DatasetRegistry& dataset_registry();

/// The type that a `data` section names; an empty one if it names none. Marks nothing as read.
const DatasetType& dataset_type(const Config& data);

/// Writes the keys that the `data` section of a new run states (DatasetType::new_run_keys) into
/// `data`, where they are absent. Does nothing if it names no type.
void write_new_run_keys(Config data);

/// Adds mnist, cifar10, cifar100, image_folder, csv, hdf5, npz, npy, glyphs, colour_glyphs,
/// synthetic, text, tokens and labelled_text. *Errors:* StateError if they are already registered.
void register_datasets(DatasetRegistry& registry);

/// For factories: `task` (classification | regression, default classification), and, read for
/// classification only, `num_classes` (default 0: one more than the largest training label).
/// *Errors:* ConfigError on another value.
struct TaskKeys {
  Task task = Task::Classification;
  int64_t num_classes = 0;
};
TaskKeys read_task(const Config& data);

/// Whether the files exist that load_data reads the training examples from. True for data without
/// files.
bool has_training_files(const Config& data);

/// For a data section that could not be loaded (its files are missing): whether it has keys that
/// its type does not know (DatasetType::late_keys). *Errors:* ConfigError at the key, with the
/// nearest name.
void require_known_data_keys(const Config& data);

/// The splits that have their own files, for a trained model: its training files are not read and
/// may be missing. `train` is one of the other splits, which shows their kind; null if there is
/// none. Reads the keys of load_data; `normalize` and `normalize_targets` must be maps if they are
/// given, since there is nothing to measure. *Errors:* as load_data; DataError if classes or
/// columns are not the known ones.
DataSplits load_held_out(const Config& data, uint64_t seed, const KnownData& known);

/// Largest number of classes: a label beyond it is a mistake in the data, not a class.
inline constexpr int64_t kMaxClasses = 1 << 20;

/// Builds the data that `data` describes: `type` and the keys of that type
/// (docs/reference/config.md, section data), and for all of them, applied in this order:
///
/// - `limit`: use only the first n training examples. Default: all.
/// - `validation`: training examples held out, as a count (≥ 1) or as a fraction in (0, 1), chosen
///   by a permutation that depends on `seed` alone. Default 0: none. Of `text` and `tokens`, tokens
///   at the end; of `csv` and `labelled_text` it may be a file.
/// - `test`: the same for a test split, of types that have it among their split_keys.
/// - `normalize`: `none` (inputs as stored; pixels 0 to 255) | `unit` (pixels divided by 255; the
///   default for images, and for nothing else; other inputs default to none) | `standard` (mean 0
///   and std 1 over the training examples that are not held out: per feature, or for images over
///   the pixels of each channel) | `{mean: m, std: s}` (numbers, or lists with one per channel of
///   examples [channels, rows, columns], or for inputs that are not images one per feature; for
///   images in units of pixels divided by 255).
/// - `normalize_targets`: true | false | `{mean: m, std: s}`, whether regression's targets are
///   scaled to mean 0 and std 1 over the training examples that are not held out, each by itself.
///   Results and predictions are in the original unit. Default false.
/// - `augment`: a map of `crop`, `flip`, `cutout`, `mixup` and `rand_augment` (a map of
///   `operations`, default 2, and `magnitude`), see AugmentOptions. For images (mixup for all
///   inputs except tokens), and only in training. Default: none.
/// - `sampling`: once | balanced (see Sampling), of the loader of the training split. Default once.
///
/// Tokens are neither normalized nor augmented: those keys are errors there.
///
/// A missing `orientation` or `unk` counts as in configurations of earlier versions (`stored`,
/// `false`): the resolved configuration of a new run states them (`exif`, `true`).
///
/// *Errors:* ConfigError on an unknown type (with the nearest name) or values out of range;
/// DataError, with the file's path, on data that cannot be used.
DataSplits load_data(const Config& data, uint64_t seed);

}  // namespace lacuna
