// StoredValues: what files hold for models, under the names in the file: a checkpoint's parameters
// and buffers, the arrays of a file of another tool's, with their masks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/train/weights/int8_weight.hpp"

namespace lacuna {

class StoredValues {
 public:
  /// What there is under one dotted name.
  struct Item {
    Shape shape;
    std::string type;            ///< in words where it is of no use as values ("I64"), else empty
    bool is_compressed = false;  ///< a parameter in a layout of nonzeros, which no buffer can take
    std::string stored_as = {};  ///< the type that is converted to F32, else empty
    std::string mask = {};       ///< the name of the mask that stands next to it, else empty
    bool is_int8 = false;        ///< bytes with scales, which `copy` multiplies
  };

  virtual ~StoredValues() = default;
  const std::map<std::string, Item>& items() const { return items_; }
  /// The file that they are in.
  const std::string& path() const { return path_; }
  /// Whether it is another tool's file, whose names may be other than lacuna's.
  virtual bool is_foreign() const = 0;
  /// Adds an item to a state under another name, as `save_parameter` writes it, with its mask where
  /// there is one. *Errors:* CheckpointError.
  virtual void copy(const std::string& name, const std::string& as, StateDict& state) const = 0;
  /// An item that is int8, as it is; `is_turned`: stored [inputs, outputs]. *Errors:*
  /// CheckpointError.
  virtual Int8Weight int8(const std::string& name, bool is_turned) const;

 protected:
  explicit StoredValues(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<std::string, Item> items_;
};

/// Whether the path is another tool's, by its name, as a folder with a model.safetensors, or as a
/// pickle by its first bytes: a file of arrays, or one that is refused (pickles).
bool is_foreign_file(const std::string& path);

/// The arrays of another tool's file: .safetensors, .safetensors.index.json and the files that it
/// names, .npz, .npy, or a folder of Hugging Face's.
///
/// An array NAME_mask next to one called NAME is its mask, of zeros and ones in any type, as
/// cstorch saves them. So is the mask next to a NAME_orig, which torch.nn.utils.prune makes and
/// which is called NAME here. NAME.data, NAME.indices, NAME.indptr and NAME.shape together are NAME
/// with a mask, as scipy's csr_matrix has it; NAME.tensor_shape is its shape where that is no
/// matrix. An array of I8 next to a NAME_scale is int8 (int8_weight.hpp). A
/// '/' in a name is a dot. *Errors:* CheckpointError; for pickles, which are never read, with the
/// lines of Python that convert the file.
std::unique_ptr<StoredValues> open_stored_arrays(const std::string& path);

/// A checkpoint's parameters and buffers. *Errors:* CheckpointError.
std::unique_ptr<StoredValues> open_stored_checkpoint(const CheckpointFile& file);

/// Nothing for a file that can be read. *Errors:* CheckpointError for a pickle, or a folder of
/// Hugging Face's with pickles, with the lines of Python that convert them.
void refuse_pickles(const std::string& path);

/// The file that a path of another tool's means: itself, or the model.safetensors in a folder, or
/// its model.safetensors.index.json. *Errors:* CheckpointError for a folder of pickles.
std::string foreign_file(const std::string& path);

}  // namespace lacuna
