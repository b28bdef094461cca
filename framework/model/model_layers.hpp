// The layers that a model's description means: templates filled in, repetitions written out, every
// layer under its path. What a layer is, and whether it fits, is found out where they are built.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// A layer, or a group of layers.
struct ModelLayer {
  enum class Kind { Plain, Sequential, Residual, Parallel };

  Kind kind = Kind::Plain;
  std::string type;      ///< as it was written; of a template its name
  std::string name;      ///< within the group that it is added to; may have dots
  std::string path;      ///< full
  Config node;           ///< where it stands, for messages
  Config options;        ///< its map, an empty one where it was given by its type alone
  bool is_copy = false;  ///< whether options are those of a copy, so that defaults stay there
  std::vector<ModelLayer> layers = {};    ///< of a group
  std::vector<ModelLayer> shortcut = {};  ///< of a residual; empty: the identity
  bool always_shortcut = false;           ///< whether it is used where the identity would do

  /// "layer 'fc1' (linear)", and where it stands.
  std::string described() const;
};

/// What a model may leave out because the data determines it; 0: it does not.
struct ModelContext {
  int64_t vocabulary_size = 0;    ///< ids that tokens have
  int64_t positions = 0;          ///< tokens of an example, at most
  int64_t num_classes = 0;        ///< values that the last layer is to give
  bool has_token_labels = false;  ///< for each token, and not for the example
  /// Names of the classes, where the data may give them in another order; otherwise none.
  std::vector<std::string> class_names = {};
};

/// An expanded model.
struct ModelLayers {
  Config node;    ///< the list as it was written
  Config define;  ///< the templates by their names, or null
  std::vector<ModelLayer> layers;
  /// Copies that templates and repetitions have made of what is written. What is written is marked
  /// as read where it was copied, so that an unknown key is found here, at its position.
  std::vector<Config> copies = {};
  /// Keys that a `first` gave to a copy: where they stand there, and where they were written, as
  /// Config::where returns it. An error of the one is one of the other.
  std::vector<std::pair<std::string, std::string>> moved_keys = {};
  /// What the layers were made by, for messages, as in "the preset 'gpt2' at run.yaml:3:8"; empty
  /// where they were written.
  std::string made_by = {};

  /// The message of an error, at the place where a key was written if `moved_keys` has it.
  std::string as_written(const std::string& message) const;
};

/// Expands a `model` section: a list of layers, or a map with `layers`, and with `define`
/// (templates), and `init_fan_in`, `attention_scale` and `sparse_gradient` (given to layers of
/// types that read them and have none of their own), if any. A pure function of it and of the layer
/// registry, but for what reading a Config leaves there. Layers that are used as they are written
/// are shared with the section, so that defaults are written into it.
///
/// A layer is its type alone, or a map with `type`, `name` (default: the type and its count on this
/// level of paths, as in linear1), `repeat`, `first` and the type's keys. `sequential` has `layers`
/// and is a level of paths, as is a layer whose type is a template. `residual` and `parallel` have
/// `layers` and are none; `residual` may have `shortcut` (a layer, or a list of layers) and `when`
/// (differs, always). `qkv` is a parallel of three linear layers called `names`, with the keys that
/// it gives them all; `kv_features` are the out_features of the second and third. With `repeat: n`
/// there are n copies, NAME.0 to NAME.(n − 1), the keys of `first` in the first.
///
/// What the context knows is filled in where it is missing, outside of templates and repetitions:
/// the size of the vocabulary, and the number of outputs of the model's last layer, under the keys
/// that the layers' types name (LayerType).
///
/// *Errors:* ConfigError with the position and key path: of two layers under one path (both
/// positions), of templates that name themselves (the chain), and of what substitution and binding
/// refuse; and where there are more than 10,000 layers, or groups nest deeper than 100.
ModelLayers expand_model(const Config& model, const ModelContext& context = {});

}  // namespace lacuna
