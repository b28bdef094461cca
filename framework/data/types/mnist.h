// The `mnist` dataset: MNIST, Fashion-MNIST and others in the same file format.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Keys of `data` (in addition to those of load_data):
///
/// - `dir` (required): folder of train-images-idx3-ubyte, train-labels-idx1-ubyte,
///   t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or with .gz (plain is
///   preferred).
/// - `num_classes`: labels lie in [0, num_classes). Default 10.
///
/// Inputs are images of bytes, [rows, columns]. *Errors:* DataError when the folder or a file
/// is missing, a file is damaged or not IDX, image and label counts differ, a label is out of
/// range, or the test images have another size than the training images.
DataSplits load_mnist(const Config& data, uint64_t seed);
DatasetType mnist_dataset();

}  // namespace lacuna
