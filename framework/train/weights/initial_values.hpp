// `model.init_from`: the values that a model starts from, where it is not the seed's.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/weights/int8_weight.hpp"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// The notes of loading them, and what the first masks are compared with.
struct FirstValues {
  std::vector<std::string> notes;  ///< lines for a log: what was converted, which masks found
  std::vector<std::string> warnings = {};           ///< lines for a log, too
  std::map<std::string, PatternPtr> patterns = {};  ///< as they were loaded; empty: nothing was
  std::set<std::string> methods = {};  ///< init_methods of the first masks, "inherit" where chosen
  bool could_inherit = false;  ///< loaded masks are dropped that `init_method: inherit` would keep

  /// Adds what the first masks of an algorithm (null: none) have made of the loaded weights, in at
  /// most four lines, and one for each weight whose pattern (N:M, blocks) another one takes the
  /// place of. That masks are dropped which could have been inherited is a warning.
  void add_mask_notes(const Module& model, const SparsityAlgorithm* algorithm);
};

/// Loads what the `init_from` of the `model` section names, if it is there: a path, or a map of
/// `path`, `rename`, `skip` and `find_pattern` (`WeightNames`). Where it is, sparsity inherits the
/// masks of the loaded weights, pruned by magnitude where more is asked for, unless its algorithm
/// (`SparsityAlgorithm::first_masks`) or its `init_method` differs: that is written into the
/// configuration. A warning is logged where the weights are of a run on text with another
/// vocabulary than the data's, or on a table whose columns have other names. *Errors:* ConfigError
/// and CheckpointError with the position, or the argument of the command line (`set_init_from`);
/// those of `load_weights`; ConfigError where the weights are of a run on a table with the data's
/// columns in another order, unless `skip` is given, which may leave out the layer that reads them.
FirstValues load_first_values(Config& config, Module& model, const DataSplits& data);

/// The int8 weights of the file that `init_from` names, for a model that has its values. *Errors:*
/// those of `load_int8`.
std::vector<Int8Weight> first_int8(const Config& model_section, Module& model);

}  // namespace lacuna
