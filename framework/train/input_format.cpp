#include "lacuna/framework/train/input_format.h"

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna {

InputFormat InputFormat::of(const DataSplits& data) {
  return {data.train->example_shape(), data.normalization, data.train->class_names(),
          data.train->tokenizer()};
}

StateDict InputFormat::state_dict() const {
  const std::span<const int64_t> sizes = example_shape.sizes();
  StateDict state;
  state.set("example_shape", std::vector<int64_t>(sizes.begin(), sizes.end()));
  state.set("normalization", Config::map({{"mean", Config::from_value(normalization.mean)},
                                          {"std", Config::from_value(normalization.std)}})
                                 .to_json());
  if (!class_names.empty()) {
    state.set("class_names", Config::from_value(class_names).to_json());
  }
  if (tokenizer != nullptr) state.set("tokenizer", tokenizer->to_json());
  return state;
}

InputFormat InputFormat::from_state(const StateDict& state) {
  InputFormat format;
  try {
    format.example_shape = Shape(state.get<std::vector<int64_t>>("example_shape"));
    const Config saved = parse_yaml(state.get<std::string>("normalization"), "normalization");
    format.normalization = {.mean = saved.required<std::vector<double>>("mean"),
                            .std = saved.required<std::vector<double>>("std")};
    if (state.contains("class_names")) {
      format.class_names = parse_yaml(state.get<std::string>("class_names"), "class_names")
                               .as<std::vector<std::string>>();
    }
    if (state.contains("tokenizer")) {
      format.tokenizer = tokenizer_from_json(state.get<std::string>("tokenizer"));
    }
  } catch (const ConfigError& error) {
    throw CheckpointError(std::string("the checkpoint's data format cannot be read: ") +
                          error.what());
  } catch (const DataError& error) {
    throw CheckpointError(std::string("the checkpoint's tokenizer cannot be read: ") +
                          error.what());
  } catch (const ShapeError& error) {
    throw CheckpointError(std::string("'data/example_shape' in the saved state: ") + error.what());
  }
  return format;
}

}  // namespace lacuna
