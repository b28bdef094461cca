// A model's weights in a file, of lacuna or of another tool.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

struct Int8Weight;

/// Writes the model's state (values, masks, other state of modules) as a checkpoint, completely or
/// not at all. Without optimizer, data and configuration: a run cannot be resumed from it, but
/// `lacuna inspect` and h5py read it, and `init_from` starts from it. *Errors:* StateError with
/// path and reason.
void save_model(const std::string& path, const Module& model);

/// How the names in a file correspond to those of a model. Parameters and buffers share one space
/// of dotted names; a file must have each of the model's names and no others, except as stated
/// here.
struct WeightNames {
  struct Rename {
    std::string from, to;
  };
  /// A name in the file is changed by the first of these whose `from` matches it, to `to`, in which
  /// the n-th `*` is replaced by the text that the n-th `*` of `from` matched (`rename_by_glob`).
  std::vector<Rename> rename = {};
  /// Globs over the model's names. Matching parameters keep their values, whether or not the file
  /// has these names (after `rename`); names only in the file are ignored if they match.
  std::vector<std::string> skip = {};
  /// Whether the zeros of linear and convolution weights without a mask are used as their mask, and
  /// its pattern is detected (layouts/find_pattern.hpp): such a weight is stored in the layout of
  /// its pattern. A weight without zeros, or with only zeros, stays dense.
  bool find_pattern = false;

  bool empty() const { return rename.empty() && skip.empty() && !find_pattern; }
};

/// The report of loading.
struct LoadedWeights {
  std::vector<std::string> notes;  ///< lines for a log: what was converted, which masks were found
  std::vector<std::string> warnings = {};  ///< weights of another tool's file that are all zeros
  std::vector<std::string> masked;   ///< parameters that another tool's file, or zeros, gave a mask
  TokenizerPtr tokenizer = nullptr;  ///< of a run on text, loaded without `names`
  bool is_quantized = false;         ///< a quantized run's float32 values
  /// For a run on a table with column names: the columns of the inputs, in order.
  std::vector<std::string> columns = {};
  /// The categories of the text columns among them.
  std::map<std::string, std::vector<std::string>> categories = {};
};

/// Gives the model the values of a file.
///
/// - A file that `save_model` or `lacuna train` wrote, or of a run folder the best that is kept,
///   which `notes` then states, else the newest good checkpoint: each parameter gets the layout and
///   mask it was saved in. Without `names`, other state of modules (counters of random draws) is
///   loaded, too.
/// - A file of another tool: its name ends in `.safetensors`, `.safetensors.index.json`, `.npz` or
///   `.npy` (one array, named as the file is), or in `.onnx` if lacuna wrote it, or it is a folder
///   with a `model.safetensors`. Values are F32; F64, F16 and BF16 are converted. A parameter
///   becomes dense, unless the file also has its mask, an array of zeros and ones with its name and
///   `_mask` (as cstorch saves masks, and torch.nn.utils.prune, which calls the weight
///   `NAME_orig`): it is then stored as csr or masked, and values outside the mask are dropped.
///   Names of Hugging Face's files are found with or without a family's prefix, and in older forms
///   (`gamma` and `beta`; model/presets/foreign_names.hpp); GPT-2's four weights per block that are
///   stored [in, out] are transposed. A head's weight that the model ties to another is ignored if
///   both are equal. Arrays that other frameworks store next to weights are ignored if the model
///   has no such names: `num_batches_tracked`, `*.attn.bias`, `*.masked_bias`, `position_ids`,
///   `token_type_ids` and `*.rotary_emb.inv_freq`.
/// - Pickles (`.pt`, `.pth`, `.th`, `.bin`, `.pkl`) are refused, with the lines of Python that
///   convert them.
///
/// *Errors:* before anything is changed: CheckpointError when the file is damaged, has values that
/// are NaN or infinite, or belongs to a different model, with everything that is missing (with the
/// nearest name in the file) or unexpected, or has another shape or type, or a name that is used
/// twice; ConfigError when a glob of `skip` matches nothing, and when a `to` has more stars than
/// its `from`. *Cost:* the file's values are in memory once, in addition to the model's.
LoadedWeights load_weights(const std::string& path, Module& model, const WeightNames& names = {});

/// The weights, among those that `load_weights` would read, that are int8 in the file; none in
/// lacuna's own files. *Errors:* as load_weights.
std::vector<Int8Weight> load_int8(const std::string& path, Module& model,
                                  const WeightNames& names = {});

/// Whether a path names weights of another tool that `load_weights` can read, by its ending or as a
/// Hugging Face folder. *Errors:* CheckpointError for a pickle, with the lines of Python that
/// convert it.
bool is_foreign_weights(const std::string& path);

/// Sets a configuration's `model.init_from` to `path` and keeps its `rename`, `skip` and
/// `find_pattern`; a list of layers becomes a map for it. Errors in the file are then reported at
/// `argument`, the part of the command line that named it ("--init-from"), and not at a line of the
/// configuration. *Errors:* ConfigError if there is no section `model`.
void set_init_from(Config& config, const std::string& path, const std::string& argument);

}  // namespace lacuna
