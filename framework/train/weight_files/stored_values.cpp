#include "lacuna/framework/train/stored_values.hpp"

#include <array>
#include <utility>
#include <variant>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/safetensors_file.h"
#include "lacuna/framework/param/saved_parameter.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {
namespace {

class StoredTensors final : public StoredValues {
 public:
  explicit StoredTensors(const std::string& path) : StoredValues(path), file_(path) {
    for (const SafetensorsEntry& entry : file_.tensors()) {
      items_[entry.name] = {.shape = entry.shape, .type = entry.is_float() ? "" : entry.dtype};
    }
  }

  void copy(const std::string& name, const std::string& as, StateDict& state) const override {
    try {
      state.set(as, file_.read(file_.tensor(name)));
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
  }

 private:
  SafetensorsFile file_;
};

class StoredCheckpoint final : public StoredValues {
 public:
  explicit StoredCheckpoint(const CheckpointFile& file)
      : StoredValues(file.path()), state_(file.read().state.below("model")) {
    naming_file(path(), [&] {
      for (const std::string& name : saved_parameter_names(state_)) {
        items_[name] = {.shape = SavedParameter(state_, name).shape(),
                        .type = "",
                        .is_compressed = state_.contains(name + "/indptr")};
      }
    });
    for (const auto& [key, value] : state_.values()) {
      const auto* values = std::get_if<Tensor>(&value);
      const size_t slash = key.rfind('/');
      if (values == nullptr || slash == std::string::npos) continue;
      if (state_.contains(key.substr(0, slash) + "/indptr")) continue;  // a part of a parameter
      const std::string name = key.substr(0, slash) + "." + key.substr(slash + 1);
      buffers_[name] = key;
      items_[name] = {.shape = values->shape(), .type = ""};
    }
  }

  void copy(const std::string& name, const std::string& as, StateDict& state) const override {
    const auto buffer = buffers_.find(name);
    if (buffer != buffers_.end()) return state.set(as, state_.get<Tensor>(buffer->second));
    for (const char* ending :
         {"", "_mask", "/values", "/indptr", "/indices", "/shape", "/layout"}) {
      const auto found = state_.values().find(name + ending);
      if (found != state_.values().end()) state.set(as + ending, found->second);
    }
  }

 private:
  StateDict state_;
  std::map<std::string, std::string> buffers_;  // names in the state, by dotted name
};

}  // namespace

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

std::unique_ptr<StoredValues> open_stored_values(const std::string& path) {
  if (!is_safetensors(path)) return std::make_unique<StoredCheckpoint>(find_checkpoint(path));
  try {
    return std::make_unique<StoredTensors>(path);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace lacuna
