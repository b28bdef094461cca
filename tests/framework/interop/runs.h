// Runs made without training: a checkpoint with a model's configuration, inputs' format and values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {

/// A model of a `model` section in YAML.
inline std::unique_ptr<Sequential> build_from(const std::string& yaml, const Shape& example) {
  register_builtins();
  return build_model(model_layers(parse_yaml(yaml, "model.yaml")), example);
}

/// Writes what `load_run` takes.
inline void write_run(const std::string& path, const std::string& model_yaml, const Shape& example,
                      const Module& model, const StateDict& averages = {},
                      const std::string& more_config = "") {
  Config config = Config::map({{"model", parse_yaml(model_yaml, "model.yaml")}});
  if (!more_config.empty()) {
    for (const auto& [key, value] : parse_yaml(more_config, "more.yaml").entries()) {
      config.set(key, value);
    }
  }
  Checkpoint checkpoint{.state = {}, .config_yaml = config.to_yaml(), .step = 7};
  checkpoint.state.merge("model", model.state_dict());
  checkpoint.state.merge("data",
                         InputFormat{.example_shape = example, .normalization = {}}.state_dict());
  if (!averages.empty()) checkpoint.state.merge("ema", averages);
  write_checkpoint(path, checkpoint);
}

}  // namespace lacuna
