#include "lacuna/framework/io/storage/foreign_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

enum class Tool {
  None,
  Keras,
  Onnx,
  Gguf,
  Ggml,
  TfLite,
  TensorFlow,
  CoreMl,
  Paddle,
  Flax,
  OpenVino
};

struct Ending {
  std::string_view text;
  Tool tool;
};
constexpr std::array<Ending, 15> kEndings = {{{".keras", Tool::Keras},
                                              {".weights.h5", Tool::Keras},
                                              {".hdf5", Tool::Keras},
                                              {".onnx", Tool::Onnx},
                                              {".gguf", Tool::Gguf},
                                              {".ggml", Tool::Ggml},
                                              {".tflite", Tool::TfLite},
                                              {".pb", Tool::TensorFlow},
                                              {".mlmodel", Tool::CoreMl},
                                              {".mlpackage", Tool::CoreMl},
                                              {".pdparams", Tool::Paddle},
                                              {".pdmodel", Tool::Paddle},
                                              {".msgpack", Tool::Flax},
                                              {".data-00000-of-00001", Tool::TensorFlow},
                                              {".xml", Tool::OpenVino}}};

constexpr std::string_view kZip = "PK\x03\x04";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string first_bytes(const std::string& path, size_t count) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

// Keras puts its version, its layers' names or a group of this name into every HDF5 file.
bool is_keras_hdf5(const std::string& path) {
  const std::string bytes = first_bytes(path, size_t{4} << 20);
  return bytes.find("keras") != std::string::npos ||
         bytes.find("layer_names") != std::string::npos ||
         bytes.find("model_weights") != std::string::npos;
}

bool holds(std::string_view header, std::string_view text) {
  return header.find(text) != std::string_view::npos;
}

Tool tool_of_bytes(const std::string& path, std::string_view header) {
  if (header.starts_with("GGUF")) return Tool::Gguf;
  if (header.starts_with("ggml") || header.starts_with("lmgg") || header.starts_with("tjgg")) {
    return Tool::Ggml;
  }
  if (header.size() >= 8 && header.substr(4, 4) == "TFL3") return Tool::TfLite;
  if (header.starts_with(kHdf5Signature) && is_keras_hdf5(path)) return Tool::Keras;
  if (header.starts_with(kZip) &&
      (holds(header, "model.weights.h5") ||
       header.substr(std::min<size_t>(30, header.size())).starts_with("metadata.json"))) {
    return Tool::Keras;
  }
  // Field 1, the version of the format; then field 2, a text: the name of what wrote it.
  // TensorFlow's saved_model.pb begins alike.
  if (!lower(path).ends_with(".pb") && header.size() > 4 && header[0] == '\x08' && header[1] > 0 &&
      header[1] < 32 && header[2] == '\x12' && header[3] != 0) {
    return Tool::Onnx;
  }
  return Tool::None;
}

Tool tool_of_name(const std::string& path, std::string_view header) {
  const std::string name = lower(path);
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    if (ending.text == ".hdf5" && !header.starts_with(kHdf5Signature)) continue;
    return ending.tool;
  }
  std::error_code error;
  return fs::exists(path + "/saved_model.pb", error) ? Tool::TensorFlow : Tool::None;
}

std::string stem_of(const std::string& path) {
  const fs::path file(path);
  return (file.parent_path() / file.stem()).string();
}

// Keras's kernels have their inputs first and convolutions their channels last.
std::string keras_lines(const std::string& path) {
  return fmt::format(
      "convert it once, with these lines of Python (where they fail: docs/guides/interop.md):\n"
      "  import keras, numpy\n"
      "  def turned(name, a):\n"
      "    return a if 'kernel' not in name else a.transpose(3, 2, 0, 1) if a.ndim == 4 else a.T\n"
      "  weights = {{getattr(w, 'path', w.name).split(':')[0]: numpy.asarray(w) for w in "
      "keras.models.load_model('{}').weights}}\n"
      "  numpy.savez('{}.npz', **{{k.replace('/kernel', '/weight'): turned(k, a) for k, a in "
      "weights.items()}})",
      path, stem_of(path));
}

std::string onnx_lines(const std::string& path) {
  return fmt::format(
      "convert it once, with these lines of Python:\n"
      "  import numpy, onnx, onnx.numpy_helper\n"
      "  numpy.savez('{1}.npz', **{{t.name: onnx.numpy_helper.to_array(t) for t in "
      "onnx.load('{0}').graph.initializer}})",
      path, stem_of(path));
}

std::string gguf_lines(const std::string& path) {
  return fmt::format(
      "import the .safetensors files that it was made from, or convert it with these lines of "
      "Python:\n"
      "  import gguf, gguf.quants, numpy\n"
      "  numpy.savez('{1}.npz', **{{t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in "
      "gguf.GGUFReader('{0}').tensors}})",
      path, stem_of(path));
}

std::string original(std::string_view what) {
  return fmt::format(
      "save the weights of {} as .safetensors or .npz, then `lacuna import FILE --config CONFIG "
      "--out RUN`",
      what);
}

std::string words_of(Tool tool, const std::string& path) {
  switch (tool) {
    case Tool::Keras:
      return "is a Keras model, which is not read; " + keras_lines(path);
    case Tool::Onnx:
      return "is an ONNX model, which is not read; " + onnx_lines(path);
    case Tool::Gguf:
      return "is a GGUF model (llama.cpp), which is not read; " + gguf_lines(path);
    case Tool::Ggml:
      return "is a GGML model (llama.cpp), which is not read; " +
             original("the model that it was made from");
    case Tool::TfLite:
      return "is a TensorFlow Lite model, which is not read; " +
             original("the model that it was made from");
    case Tool::TensorFlow:
      return "is a TensorFlow model, which is not read; " + original("its variables");
    case Tool::CoreMl:
      return "is a Core ML model, which is not read; " +
             original("the model that it was made from");
    case Tool::Paddle:
      return "is a PaddlePaddle model, which is not read; " + original("its state_dict()");
    case Tool::Flax:
      return "is a Flax model, which is not read; " + original("its parameters");
    case Tool::OpenVino:
      return "is an OpenVINO model, which is not read; " +
             original("the model that it was made from");
    case Tool::None:
      break;
  }
  return {};
}

// A file that would be read under another name.
std::string renamed(const std::string& path, std::string_view header) {
  const std::string_view ending = header.starts_with("\x93NUMPY")                     ? ".npy"
                                  : header.starts_with(kZip) && holds(header, ".npy") ? ".npz"
                                  : header.size() > 9 && header[8] == '{' &&
                                          (header[9] == '"' || header[9] == '}' || header[9] == ' ')
                                      ? ".safetensors"
                                      : "";
  if (ending.empty() || path.ends_with(ending)) return {};
  return fmt::format(
      "is a {0} file by its first bytes, so its name must end in {0}: run `mv '{1}' '{2}{0}'`, "
      "then use that name",
      ending, path, stem_of(path));
}

}  // namespace

std::string foreign_model(const std::string& path, std::string_view header) {
  Tool tool = tool_of_bytes(path, header);
  if (tool != Tool::None) return words_of(tool, path);
  if (std::string words = renamed(path, header); !words.empty()) return words;
  return words_of(tool_of_name(path, header), path);
}

std::string foreign_model(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  return foreign_model(path, first_bytes(path, 512));
}

}  // namespace lacuna
