#include "lacuna/framework/train/weights/foreign_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/foreign_model.hpp"
#include "lacuna/framework/train/weights/stored_values.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool ends_as_pickle(std::string path) {
  std::ranges::transform(path, path.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array<std::string_view, 5> kEndings = {".pt", ".pth", ".th", ".bin",
                                                               ".pkl"};
  return std::ranges::any_of(kEndings, [&](auto ending) { return path.ends_with(ending); });
}

// A pickle whatever its name is, or PyTorch's archive with one first. A safetensors file may begin
// with 0x80 and a small number, too, as the size of its header; zeros follow there.
bool begins_as_pickle(const std::string& path) {
  constexpr size_t kLocalHeader = 30, kNameLength = 26;  // of a zip file
  std::string head(kLocalHeader + 256, '\0');
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const std::string_view bytes = head;
  if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    constexpr std::string_view kZeros("\0\0\0\0", 4);
    constexpr char kFrame = '\x95';  // of protocols 4 and 5, with zeros in its length
    return bytes.size() < 8 || bytes[2] == kFrame || bytes.substr(4, 4) != kZeros;
  }
  if (!bytes.starts_with("PK\x03\x04") || bytes.size() < kLocalHeader) return false;
  const auto length = static_cast<unsigned char>(bytes[kNameLength]);
  return bytes.substr(kLocalHeader, length).ends_with("/data.pkl");
}

std::string without_ending(const std::string& path) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return has_ending ? path.substr(0, dot) : path;
}

// How a file of PyTorch's becomes one that is read, in a folder of Hugging Face's, too.
std::string conversion(const std::string& path) {
  constexpr std::string_view kOfFolder = "/pytorch_model.bin";
  const std::string stem = path.ends_with(kOfFolder)
                               ? path.substr(0, path.size() - kOfFolder.size()) + "/model"
                               : without_ending(path);
  return fmt::format(
      "Convert it once, with these lines of Python:\n"
      "  import torch, safetensors.torch\n"
      "  state = torch.load('{0}', map_location='cpu', weights_only=True)\n"
      "  safetensors.torch.save_file({{k: v.clone().contiguous() for k, v in "
      "state.get('state_dict', state).items()}}, '{1}.safetensors')",
      path, stem);
}

[[noreturn]] void refuse_pickle(const std::string& path, std::string_view sign) {
  std::error_code error;
  if (!fs::exists(path, error)) {  // reported first, since nothing can be converted
    throw CheckpointError(
        "cannot read '" + path + "': " +
        (error ? error : std::make_error_code(std::errc::no_such_file_or_directory)).message());
  }
  throw CheckpointError(fmt::format(
      "'{}' is a pickle by its {}: reading it would run code, so lacuna never reads one. {}", path,
      sign, conversion(path)));
}

// The error of a NumPy file that holds Python objects also states what to do.
std::string with_advice(const std::string& problem, const std::string& path) {
  if (problem.find("Python objects") != std::string::npos) {
    return problem + fmt::format(
                         ". Save plain arrays instead, where you trust the file:\n"
                         "  import numpy\n"
                         "  state = numpy.load('{}', allow_pickle=True)\n"
                         "  numpy.savez('{}.plain.npz', **{{k: numpy.asarray(v, numpy.float32) for "
                         "k, v in (state.items() if hasattr(state, 'items') else "
                         "state.item().items())}})",
                         path, without_ending(path));
  }
  if (problem.find("this is a PyTorch file") == std::string::npos) return problem;
  return problem + ", which is never read. " + conversion(path);
}

bool is_folder_of_weights(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) &&
         (fs::exists(path + "/model.safetensors", error) ||
          fs::exists(path + "/model.safetensors.index.json", error) ||
          fs::exists(path + "/pytorch_model.bin", error) ||
          fs::exists(path + "/pytorch_model.bin.index.json", error));
}

}  // namespace

bool is_foreign_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return is_folder_of_weights(path);  // whatever a run is called
  return array_format(path) != ArrayFormat::None || ends_as_pickle(path) || begins_as_pickle(path);
}

std::string foreign_file(const std::string& path) {
  std::error_code error;
  if (!is_folder_of_weights(path)) return path;
  if (fs::exists(path + "/model.safetensors", error)) return path + "/model.safetensors";
  const std::string index = path + "/model.safetensors.index.json";
  if (fs::exists(index, error)) return index;
  if (fs::exists(path + "/pytorch_model.bin", error)) return path + "/pytorch_model.bin";
  throw CheckpointError(fmt::format(
      "the weights in '{0}' are pickles (pytorch_model.bin.index.json): reading them would run "
      "code, so lacuna never reads them. Convert them once, with these lines of Python:\n"
      "  import glob, torch, safetensors.torch\n"
      "  state = {{k: v.clone().contiguous() for f in glob.glob('{0}/pytorch_model-*.bin') for k, "
      "v in torch.load(f, map_location='cpu', weights_only=True).items()}}\n"
      "  safetensors.torch.save_file(state, '{0}/model.safetensors')",
      path));
}

void refuse_pickles(const std::string& path) {
  const std::string file = foreign_file(path);
  if (ends_as_pickle(file)) {
    if (const std::string words = foreign_model(file); !words.empty() && !begins_as_pickle(file)) {
      throw CheckpointError("'" + file + "' " + words);
    }
    refuse_pickle(file, "name");
  }
  if (array_format(file) == ArrayFormat::None && begins_as_pickle(file)) {
    refuse_pickle(file, "first bytes");
  }
}

void refuse_unreadable(const std::string& file, const DataError& error) {
  const std::string problem = with_advice(error.what(), file);
  if (problem == error.what() && begins_as_pickle(file)) refuse_pickle(file, "first bytes");
  if (const std::string words = foreign_model(file); !words.empty()) {
    throw CheckpointError("'" + file + "' " + words);
  }
  throw CheckpointError(problem);
}

}  // namespace lacuna
