// StoredValues: what files hold for models, under the names in the file: a checkpoint's parameters
// and buffers, a safetensors file's tensors.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/state_dict.h"

namespace lacuna {

class StoredValues {
 public:
  /// What there is under one dotted name.
  struct Item {
    Shape shape;
    std::string type;            ///< in words where it is of no use as values ("I64"), else empty
    bool is_compressed = false;  ///< a parameter in a layout of nonzeros, which no buffer can take
  };

  virtual ~StoredValues() = default;
  const std::map<std::string, Item>& items() const { return items_; }
  /// The file that they are in.
  const std::string& path() const { return path_; }
  /// Adds an item to a state under another name, as `save_parameter` writes it.
  virtual void copy(const std::string& name, const std::string& as, StateDict& state) const = 0;

 protected:
  explicit StoredValues(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<std::string, Item> items_;
};

/// Whether the file is told by its name to be of that format.
bool is_safetensors(const std::string& path);
/// A safetensors file, a checkpoint, or a run folder's newest good one. *Errors:* CheckpointError.
std::unique_ptr<StoredValues> open_stored_values(const std::string& path);

}  // namespace lacuna
