// Presets: a `model` section of a family's name and the keys of its config.json, instead of a list
// of layers. What they mean is written in the same syntax, a file for each family.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/model/model_layers.hpp"

namespace lacuna {

/// Whether a `model` section is a preset: a map with `type` or `from_hf`.
bool is_preset(const Config& model);

/// "bert", "gpt2", …: what `type` can be.
std::vector<std::string> preset_names();
/// Of a layer's name that is none of `known`: what is near it, or that a preset is called so.
std::string unknown_layer(const std::string& name, const std::vector<std::string>& known);
/// Each with a line that describes it.
std::vector<std::pair<std::string, std::string>> preset_list();

/// The section, a map with `layers`, that a preset means.
///
/// The preset's keys are those of config.json in the models of Hugging Face, with the family's
/// defaults; `vocab_size` and `num_labels` are the context's where they are left out and it knows
/// them. Keys that do not affect the model (architectures, torch_dtype, …) are passed over. All
/// that the model depends on is written into the section, which then means the same without data.
///
/// `from_hf: DIR` takes the family (model_type) and what the section does not state itself from
/// DIR/config.json. It is replaced in the section: by `type` and the file's keys, and by
/// `init_from: DIR/model.safetensors` (DIR where its weights are in several files, or are pickles,
/// which loading refuses with advice), unless there is one.
///
/// *Errors:* ConfigError at an unknown key, with the nearest; at a value that the family's layers
/// have no way to follow; when DIR/config.json cannot be read, or is of another family.
Config expand_preset(const Config& model, const ModelContext& context = {});

/// "the preset 'gpt2' at run.yaml:3:8", for messages; empty if the section does not state its
/// type.
std::string preset_in_words(const Config& model);

/// Where the values of a preset's keys stand, and the same with the key (ModelLayers::moved_keys).
/// To be called once `expand_preset` has written all keys.
std::vector<std::pair<std::string, std::string>> preset_keys(const Config& model);

/// What of a preset's section is a width.
struct PresetWidths {
  std::vector<std::string> keys;   ///< the first one is that of the whole network
  std::vector<std::string> heads;  ///< keys of heads, into which the first one is divided
};
/// Nothing for a section that is no preset.
std::optional<PresetWidths> preset_widths(const Config& model);

/// What a config.json states in addition to the preset's keys.
struct HuggingFaceFacts {
  Shape example_shape;                   ///< of an input
  std::vector<std::string> class_names;  ///< empty: LABEL_0, LABEL_1, …
};

/// The config.json of a preset's section, with which Hugging Face's transformers build the same
/// model: the family's keys, model_type, architectures, and of classes id2label and label2id.
/// *Errors:* ConfigError where there is no such model there: cifar_resnet, `pooling: mean`, images
/// that are not square; those of `expand_preset`.
Config hugging_face_config(const Config& model, const HuggingFaceFacts& facts);

}  // namespace lacuna
