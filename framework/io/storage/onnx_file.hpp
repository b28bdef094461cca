// Weights in the ONNX models that lacuna has written.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {

/// Whether the file begins as an ONNX model of lacuna's. Models of others are not read: the
/// weights of their products may be stored either way round.
bool is_own_onnx(const std::string& path);

/// The model's parameters and running statistics under their names, sparse ones dense, and the
/// scales of int8 weights and their inputs; not the constants of its operators. *Errors:* DataError
/// with the path when it is damaged, or an array is of a type that lacuna does not write. *Cost:*
/// the file is in memory.
std::unique_ptr<ArrayFile> open_onnx(const std::string& path);

}  // namespace lacuna
