// A model's weights in a file: lacuna's own, and those of others.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Writes the model's state (values, masks, what modules keep besides) as a checkpoint, whole or
/// not at all. No optimizer, no data, no configuration: a run cannot be resumed from it, while
/// `lacuna inspect` and h5py read it, and `init_from` starts from it. *Errors:* StateError with
/// path and reason.
void save_model(const std::string& path, const Module& model);

/// How the names in a file and those of a model belong together. Parameters and buffers share one
/// space of dotted names; a file has each of the model's, and no others, but for what is said here.
struct WeightNames {
  struct Rename {
    std::string from, to;
  };
  /// A name in the file is changed by the first of these whose `from` matches it: `to`, where the
  /// n-th `*` stands for what the n-th `*` of `from` matched (`rename_by_glob`).
  std::vector<Rename> rename;
  /// Globs over the model's names. What matches keeps the values it has, whether or not the file
  /// has it under that name (after `rename`); what the file alone has is ignored if it matches.
  std::vector<std::string> skip;

  bool empty() const { return rename.empty() && skip.empty(); }
};

/// Gives the model the values of a file.
///
/// - A file that `save_model` or `lacuna train` wrote, or a run folder's newest good checkpoint:
///   each parameter gets the layout and mask it was saved in. Without `names`, what modules keep
///   besides (counters of random draws) is loaded, too.
/// - A file whose name ends in `.safetensors`: parameters become dense. Values are F32; F64, F16
/// and
///   BF16 are converted. Names that Hugging Face's files have with or without a family's prefix, or
///   had (`gamma` and `beta`), are found (model/presets/foreign_names.h), GPT-2's four weights a
///   block that are stored [in, out] are transposed. A head's weight that the model ties to another
///   is passed over where it is equal to that one. So is what other frameworks keep beside weights,
///   where the model has nothing of that name: `num_batches_tracked`, `*.attn.bias`,
///   `*.masked_bias`, `position_ids`, `token_type_ids` and `*.rotary_emb.inv_freq`.
///
/// *Errors:* before anything is changed: CheckpointError when the file is damaged, or of another
/// model, with all that is missing, left over, of another shape or type, or named like another;
/// ConfigError when a glob of `skip` matches nothing, and when a `to` has more stars than its
/// `from`. *Cost:* the file's values are in memory once, besides the model's.
void load_weights(const std::string& file_or_run_folder, Module& model,
                  const WeightNames& names = {});

}  // namespace lacuna
