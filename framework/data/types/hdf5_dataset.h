// The `hdf5` dataset: arrays in one HDF5 file.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Keys of `data` (in addition to those of load_data):
///
/// - `path` (required): the HDF5 file.
/// - `train_inputs`, `train_targets`: names of datasets in the file ("group/name" reaches into
///   groups). Default: "train_inputs" and "train_targets".
/// - `test_inputs`, `test_targets`: the same for the test split; give both or neither. Default:
///   neither; then there is no test split, unless `test` holds one out, as in load_data.
/// - `task`, `num_classes`: see read_task.
/// - `channels`: first | last. With `last`, examples [rows, columns, channels] become [channels,
///   rows, columns], as convolutions expect them. Default first; a warning is logged if the sizes
///   look like channels that come last.
/// - `follow_links`: whether what the file places in other files (external links and storage,
///   virtual datasets) is read from there. Default false: it is an error, since a file from
///   elsewhere could name any file of this machine.
///
/// Inputs are [n, …example shape]: uint8 arrays are images (0 to 255), all others become float32.
/// Labels are [n] or [n, 1] whole numbers of any type, or names of classes as text, which are
/// numbered in their order, or one-hot rows [n, classes]; targets of regression are [n] or [n,
/// outputs] numbers. *Errors:* DataError with file and dataset when one is missing (with the
/// nearest name), of the wrong rank or type, empty, holds a label out of range or a number that is
/// not finite, when inputs and targets differ in number, or when the shapes of test and training
/// examples differ.
DataSplits load_hdf5(const Config& data, uint64_t seed);
DatasetType hdf5_dataset();

}  // namespace lacuna
