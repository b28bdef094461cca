// A family of models: its keys, and the layers that they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/model/substitution.h"

namespace lacuna::presets {

class Arguments;

/// One file each, but for bert.cpp, which has distilbert too.
struct Preset {
  std::string_view name;   ///< `type`, and config.json's model_type
  std::string_view about;  ///< a line for lists
  /// In YAML: `arguments`, the keys and their defaults, which may be expressions of those before
  /// (null: none); `only`, keys of which one value alone is followed here; `passed_over`, keys that
  /// do not affect the model, in addition to those of all families.
  std::string_view keys;
  /// A section with `layers`, and `define` if it needs templates.
  Config (*section)(Arguments& arguments);
  /// The keys that are widths, by which the family is made wider, the first one that of the whole
  /// network; and those of heads, which divide it, if there are any.
  std::vector<std::string_view> widths;
  std::vector<std::string_view> heads = {};
};

const Preset& gpt2();
const Preset& bert();
const Preset& distilbert();
const Preset& vit();
const Preset& llama();
const Preset& cifar_resnet();

/// The families in the order of their names.
const std::vector<const Preset*>& all_presets();

/// What a section gives a preset, with defaults for the rest, and the way from a text with
/// arguments in it to layers.
class Arguments {
 public:
  /// Reads the section, and writes what it leaves out into it. *Errors:* ConfigError.
  Arguments(const Preset& preset, const Config& section, const ModelContext& context);

  /// A null node where there is none. *Requires* a key of the preset.
  const Config& at(std::string_view name) const;
  bool has(std::string_view name) const { return !at(name).is_null(); }
  /// The value, one of these. *Errors:* ConfigError with the nearest.
  std::string choice(std::string_view name, const std::vector<std::string>& choices) const;

  /// Another argument for the text, in addition to the keys.
  void define(const std::string& name, const Config& value);
  /// The layer that an activation of transformers' is: gelu_new is {type: gelu, approximate: tanh}.
  /// *Errors:* ConfigError with the nearest that is known.
  void define_activation(const std::string& name, std::string_view key);
  /// {type: normal, std}.
  void define_normal(const std::string& name, double standard_deviation,
                     const char* type = "normal");

  /// The layers that the text means, in YAML: arguments put in, dropouts of zero left out.
  Config layers(std::string_view yaml) const;
  /// A text that is left as it is: templates.
  Config templates(std::string_view yaml) const;

 private:
  void read(const Config& section, const ModelContext& context);
  Config default_of(const std::string& name, const Config& fallback, const Config& section) const;
  void require_known(const Config& section) const;
  void refuse_others(const Config& section) const;

  const Preset& preset_;
  Config keys_;
  Scope scope_;
};

/// Appends the items of one list to another.
void append(Config& list, const Config& more);

/// Writes DIR/config.json's keys into a section with `from_hf: DIR`, as `expand_preset` documents.
void read_hugging_face(Config& section, const ModelContext& context);

/// Keys of a config.json that do not affect a model's layers, but are passed on with it:
/// from `from_hf` into the section, and from there into what is exported.
const std::vector<std::string>& kept_keys();

/// Whether a key of a section, or of config.json, is known to the preset.
bool is_key(const Preset& preset, std::string_view key);

}  // namespace lacuna::presets
