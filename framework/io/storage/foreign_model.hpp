// Model files of other tools that are not read: the tool's name, and how to convert them.
#pragma once

#include <string>
#include <string_view>

namespace lacuna {

/// The first bytes of an HDF5 file.
inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

/// Why the file or folder at `path` cannot be read as weights, and what to do, to follow "'PATH' ":
/// "is an ONNX model; convert it once, with these lines of Python: …". Known are Keras, ONNX, GGUF,
/// GGML, TFLite, TensorFlow, Core ML, PaddlePaddle, Flax and OpenVINO, by the first bytes in
/// `header` or by the ending of the name. A safetensors, npy or npz file with another ending is
/// named by its bytes. Empty for everything else. The bytes count before the ending.
/// *Cost:* none for most; for an HDF5 file its first 4 MiB are read.
std::string foreign_model(const std::string& path, std::string_view header);

/// The same for a file or folder whose first bytes have not been read. Empty if it does not exist.
std::string foreign_model(const std::string& path);

}  // namespace lacuna
