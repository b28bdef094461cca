// From the `data` section of a configuration to the splits that a run trains and is judged on.
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

/// What becomes of inputs that are missing.
enum class Missing {
  None,    ///< none are
  Mean,    ///< the mean of the training examples
  Median,  ///< their median
  Given,   ///< numbers that are given
};

/// The data of a run.
struct DataSplits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;  ///< null: none was held out
  std::shared_ptr<const Dataset> test;        ///< null: no such split
  /// As applied to each ArrayDataset by load_data, for new inputs that are to be predicted.
  Normalization normalization;
  /// For the loader of the training split, and of no other.
  AugmentOptions augment = {};
  Sampling sampling = Sampling::Once;
  /// Whether the factory has read data.validation and data.test and held out what they name;
  /// load_data then does not. Text is held out at its end, and not at random.
  bool is_held_out = false;
  /// Of a table whose first line names the columns: those of the inputs, in their order, and of the
  /// label or target.
  std::vector<std::string> columns = {};
  std::string label_column = {};
  /// Of columns that are text: the names of their categories, each of which is a feature.
  std::map<std::string, std::vector<std::string>> categories = {};
  /// What becomes of inputs that are NaN, and by what: one value for each feature. A factory gives
  /// those that are not measured; load_data does the rest.
  Missing missing = Missing::None;
  std::vector<double> fill = {};
  /// What targets were scaled by (data.normalize_targets): each became (target − mean) / std. One
  /// value for each output, or none: they are as they were.
  std::vector<double> target_mean = {}, target_std = {};
  /// Of the training examples that data.limit leaves, those held out among them, and of the splits
  /// that are not held out of these; as they were before normalization. Set by load_data and
  /// load_held_out.
  SplitHashes hashes = {};
};

/// What a trained model knows of the data that it was trained on.
struct KnownData {
  int64_t num_classes = 0;  ///< 0: regression
  std::vector<std::string> class_names = {};
  TokenizerPtr tokenizer = nullptr;       ///< of text
  std::vector<std::string> columns = {};  ///< of a table's inputs, where its first line names them
  std::string label_column = {};
  Shape example_shape = {};  ///< that the model was trained on
  std::map<std::string, std::vector<std::string>> categories = {};  ///< as DataSplits has them
  std::vector<double> fill = {};
};

/// A dataset that `data.type` can name. Only `load` must be given; what a type leaves out, commands
/// do without, or do as for data of no particular kind.
struct DatasetType {
  /// The splits of a `data` section. `seed` is the run's.
  std::function<DataSplits(const Config& data, uint64_t seed)> load;

  /// Keys of `data` that name files or folders, those of the training examples first. A run finds
  /// them from anywhere, and one that is resumed may be given others.
  std::vector<std::string> paths = {};
  /// Whether the files of the training examples are there. Default: what the first of `paths` leads
  /// to is there, or that key is absent.
  std::function<bool(const Config& data)> has_training_files = {};
  /// The splits that lie in files of their own, without reading those of the training examples:
  /// what `lacuna eval` takes where these are gone. Default: there are none.
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
  /// Keys that `load` reads when it has read files, and not before: a key that neither it nor
  /// load_data knows is then reported before files that are missing. Default: not known.
  std::optional<std::vector<std::string>> late_keys = {};
  /// What a new run's configuration states where it is absent, as earlier runs mean another thing
  /// by its absence; `lacuna prune` keeps what its run has.
  std::vector<std::pair<std::string, std::string>> new_run_keys = {};
};

/// DatasetType::split_keys with data.test among them.
std::vector<std::string> split_keys_with_test();

using DatasetRegistry = Registry<DatasetType>;
DatasetRegistry& dataset_registry();

/// The type that a `data` section names; one that can do nothing if it names none. Marks nothing as
/// read.
const DatasetType& dataset_type(const Config& data);

/// Adds mnist, cifar10, cifar100, image_folder, csv, hdf5, npz, npy, glyphs, colour_glyphs,
/// synthetic, text, tokens and labelled_text.
/// *Errors:* StateError when they are there already.
void register_datasets(DatasetRegistry& registry);

/// For factories: `task` (classification | regression, default classification), and, read for
/// classification only, `num_classes` (default 0: one more than the largest training label).
/// *Errors:* ConfigError on another value.
struct TaskKeys {
  Task task = Task::Classification;
  int64_t num_classes = 0;
};
TaskKeys read_task(const Config& data);

/// Whether the files are there that load_data takes the training examples from. True for data
/// without files.
bool has_training_files(const Config& data);

/// For a data section that could not be loaded (its files are missing): whether it has keys that
/// its type does not know (DatasetType::late_keys). *Errors:* ConfigError at the key, with the
/// nearest name.
void require_known_data_keys(const Config& data);

/// The splits that lie in files of their own, for a model that is trained: its training files are
/// neither read nor need they be there. `train` is one of the other splits, for what it tells of
/// their kind; null if there is none. Reads the keys of load_data; `normalize` must be a map
/// where it is given, as must `normalize_targets`, since there is nothing to measure. *Errors:* as
/// load_data; DataError when classes or columns are not those that are known.
DataSplits load_held_out(const Config& data, uint64_t seed, const KnownData& known);

/// Largest number of classes: a label beyond it is a mistake in the data, not a class.
inline constexpr int64_t kMaxClasses = 1 << 20;

/// Builds the data that `data` describes: `type` and the keys of that type (see mnist.h, cifar.h,
/// image_folder.h, csv.h, hdf5_dataset.h, npz_dataset.h, glyphs.h, colour_glyphs.h, synthetic.h,
/// text_dataset.h, labelled_text.h), and for all of them, applied in this order:
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
///   examples [channels, rows, columns], or for inputs that are no images one per feature; for
///   images in units of pixels divided by 255).
/// - `normalize_targets`: true | false | `{mean: m, std: s}`, whether regression's targets are
///   scaled to mean 0 and std 1 over the training examples that are not held out, each by itself.
///   Results and predictions are in the original unit. Default false.
/// - `augment`: a map of `crop`, `flip`, `cutout`, `mixup` and `rand_augment` (a map of
///   `operations`, default 2, and `magnitude`), see AugmentOptions. For images, mixup for all
///   inputs but tokens, and when training alone. Default: none.
/// - `sampling`: once | balanced (see Sampling), of the loader of the training split. Default once.
///
/// Tokens are neither normalized nor augmented: those keys are errors there.
///
/// *Errors:* ConfigError on an unknown type (with the nearest name) or values out of range;
/// DataError, with the file's path, on data that cannot be used.
DataSplits load_data(const Config& data, uint64_t seed);

}  // namespace lacuna
