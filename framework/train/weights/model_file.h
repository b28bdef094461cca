// A model's weights in a file: lacuna's own, and those of others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

struct Int8Weight;

/// Writes the model's state (values, masks, what modules keep in addition) as a checkpoint, whole
/// or not at all. No optimizer, no data, no configuration: a run cannot be resumed from it, while
/// `lacuna inspect` and h5py read it, and `init_from` starts from it. *Errors:* StateError with
/// path and reason.
void save_model(const std::string& path, const Module& model);

/// How the names in a file and those of a model belong together. Parameters and buffers share one
/// space of dotted names; a file has each of the model's and no others, except as stated here.
struct WeightNames {
  struct Rename {
    std::string from, to;
  };
  /// A name in the file is changed by the first of these whose `from` matches it: `to`, where the
  /// n-th `*` stands for what the n-th `*` of `from` matched (`rename_by_glob`).
  std::vector<Rename> rename = {};
  /// Globs over the model's names. What matches keeps the values it has, whether or not the file
  /// has it under that name (after `rename`); what the file alone has is ignored if it matches.
  std::vector<std::string> skip = {};
  /// Whether the zeros of linear and convolution weights that come without a mask are their mask,
  /// and which pattern a mask has is looked for (layouts/find_pattern.hpp): such a weight is stored
  /// in the layout of its pattern. A weight without zeros, or of nothing else, stays dense.
  bool find_pattern = false;

  bool empty() const { return rename.empty() && skip.empty() && !find_pattern; }
};

/// What loading reports.
struct LoadedWeights {
  std::vector<std::string> notes;  ///< lines for a log: what was converted, which masks were found
  std::vector<std::string> warnings = {};  ///< weights of another tool's file that are all zeros
  std::vector<std::string> masked;   ///< parameters that another tool's file, or zeros, gave a mask
  TokenizerPtr tokenizer = nullptr;  ///< of a run on text, loaded without `names`
  bool is_quantized = false;         ///< a quantized run's float32 values
  /// Of a run on a table whose first line names them: the columns of the inputs, in their order.
  std::vector<std::string> columns = {};
  /// And the categories of those that are text.
  std::map<std::string, std::vector<std::string>> categories = {};
};

/// Gives the model the values of a file.
///
/// - A file that `save_model` or `lacuna train` wrote, or of a run folder the best that is kept,
///   which `notes` then states, else the newest good checkpoint: each parameter gets the layout and
///   mask it was saved in. Without `names`, what modules keep besides (counters of random draws) is
///   loaded, too.
/// - A file of another tool: its name ends in `.safetensors`, `.npz` or `.npy` (one array, named as
///   the file is), or it is a folder with a `model.safetensors`. Values are F32; F64, F16 and BF16
///   are converted. A parameter becomes dense, but for one next to which there is an array of zeros
///   and ones called as it is with `_mask` behind (as cstorch saves masks; so does
///   torch.nn.utils.prune, which calls the weight `NAME_orig`): it is stored as csr or masked, and
///   values outside of the mask are dropped. Names that Hugging Face's files have with or without a
///   family's prefix, or had (`gamma` and `beta`), are found (model/presets/foreign_names.hpp),
///   GPT-2's four weights a block that are stored [in, out] are transposed. A head's weight that
///   the model ties to another is passed over where it is equal to that one. So is what other
///   frameworks keep next to weights, where the model has nothing of that name:
///   `num_batches_tracked`,
///   `*.attn.bias`, `*.masked_bias`, `position_ids`, `token_type_ids` and `*.rotary_emb.inv_freq`.
/// - Pickles (`.pt`, `.pth`, `.th`, `.bin`, `.pkl`) are refused, with the lines of Python that
///   convert them.
///
/// *Errors:* before anything is changed: CheckpointError when the file is damaged, has values that
/// are NaN or infinite, or is of another model, with all that is missing (and the nearest name in
/// the file), left over, of another shape or type, or named like another; ConfigError when a glob
/// of `skip` matches nothing, and when a `to` has more stars than its `from`. *Cost:* the file's
/// values are in memory once, in addition to the model's.
LoadedWeights load_weights(const std::string& path, Module& model, const WeightNames& names = {});

/// Those of the weights that `load_weights` would read which the file has in int8. *Errors:* as
/// load_weights; none of lacuna's own files.
std::vector<Int8Weight> load_int8(const std::string& path, Module& model,
                                  const WeightNames& names = {});

/// Whether a path names weights of another tool, as `load_weights` reads them, by its ending or as
/// a folder of Hugging Face's. *Errors:* CheckpointError for a pickle, with the lines of Python
/// that convert it.
bool is_foreign_weights(const std::string& path);

/// Makes `path` what a configuration's `model.init_from` names, whose `rename`, `skip` and
/// `find_pattern` stay; a list of layers becomes a map for it. What is wrong with the file is then
/// reported at `argument`, the part of the command line that named it ("--init-from"), and not of a
/// line of the configuration. *Errors:* ConfigError when there is no section `model`.
void set_init_from(Config& config, const std::string& path, const std::string& argument);

}  // namespace lacuna
