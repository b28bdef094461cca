// The `cifar10` and `cifar100` datasets: small images in colour, from their binary files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Keys of `data` (in addition to those of load_data):
///
/// - `dir` (required): folder of data_batch_1.bin … data_batch_5.bin and test_batch.bin, or the one
///   that holds it as cifar-10-batches-bin.
///
/// Inputs are images of bytes, [3, 32, 32], in ten classes. *Errors:* DataError when the
/// folder or a file is missing, a file is empty or does not hold a whole number of records, a label
/// is out of range, or the training files have different numbers of images (one is truncated).
DataSplits load_cifar10(const Config& data, uint64_t seed);

/// Keys of `data` (in addition to those of load_data):
///
/// - `dir` (required): folder of train.bin and test.bin, or the one that holds it as
///   cifar-100-binary.
/// - `labels`: `fine` (100 classes, the default) | `coarse` (20).
///
/// Inputs are images of bytes, [3, 32, 32]. *Errors:* as load_cifar10; ConfigError on other labels.
DataSplits load_cifar100(const Config& data, uint64_t seed);

DatasetType cifar10_dataset();
DatasetType cifar100_dataset();

/// The dataset whose records a file contains.
enum class CifarKind { Cifar10, Cifar100 };

/// The images of one file, without their labels: to predict from. *Errors:* DataError when it is
/// missing, is empty or does not hold a whole number of records, or a label is out of range.
Examples read_cifar_images(const std::filesystem::path& path, CifarKind kind);

}  // namespace lacuna
