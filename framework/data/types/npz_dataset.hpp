// The `npz` and `npy` datasets: arrays in NumPy's files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Keys of `data` (in addition to those of load_data):
///
/// - `path` (required): the .npz file.
/// - `train_inputs`, `train_targets`: names of arrays in it. Default: "train_inputs" and
///   "train_targets".
/// - `test_inputs`, `test_targets`: the same for the test split. Both or neither; default: neither.
/// - `task`, `num_classes`: see read_task.
/// - `channels`: first | last, as for hdf5.
///
/// Arrays may be the same as for hdf5 (array_examples.hpp); text is NumPy's U and S. *Errors:*
/// DataError with the file and the array. *Cost:* arrays are unpacked in memory.
DataSplits load_npz(const Config& data, uint64_t seed);
DatasetType npz_dataset();

/// The same of .npy files, an array each: `x_train`, `y_train` (required), `x_test` and `y_test`.
DataSplits load_npy(const Config& data, uint64_t seed);
DatasetType npy_dataset();

/// Whether a path is a .npy or .npz file's by its name.
bool is_numpy_name(const std::string& path);

/// Examples to predict from: the array of an .npy file, or of an .npz file the one that is called
/// `inputs`, test_inputs, as data.test_inputs or as data.train_inputs, the first of these that is
/// there, or the only one. With the shape of one example, a single one. *Errors:* DataError.
Examples read_numpy_inputs(const std::string& path, const Config& data, const Shape& example_shape);

}  // namespace lacuna
