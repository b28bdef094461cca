#include "lacuna/framework/train/weights/stored_values.hpp"

#include <utility>
#include <variant>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/param/saved_parameter.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"

namespace lacuna {
namespace {

class StoredCheckpoint final : public StoredValues {
 public:
  explicit StoredCheckpoint(const CheckpointFile& file)
      : StoredValues(file.path()), state_(model_state(file.read().state)) {
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

  bool is_foreign() const override { return false; }

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

Int8Weight StoredValues::int8(const std::string& name, bool) const {
  throw CheckpointError("'" + name + "' in '" + path_ + "' is not int8");
}

std::unique_ptr<StoredValues> open_stored_checkpoint(const CheckpointFile& file) {
  return std::make_unique<StoredCheckpoint>(file);
}

}  // namespace lacuna
