// Where the data is that some tests read: below the folder that LACUNA_DATA_DIR names.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace lacuna {

/// The folder `name` (mnist, text, cifar-10-batches-bin) of the data, if it is there.
inline std::optional<std::string> data_folder(const std::string& name) {
  const char* data = std::getenv("LACUNA_DATA_DIR");
  if (data == nullptr) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(data) / name;
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder.string();
}

/// The folder of MNIST's files: mnist/ below LACUNA_DATA_DIR, or the folder that it names itself.
inline std::optional<std::string> mnist_folder() {
  if (std::optional<std::string> folder = data_folder("mnist")) return folder;
  const char* data = std::getenv("LACUNA_DATA_DIR");
  if (data == nullptr) return std::nullopt;
  for (const char* end : {"", ".gz"}) {
    const std::string file = std::string("train-images-idx3-ubyte") + end;
    if (std::filesystem::exists(std::filesystem::path(data) / file)) return data;
  }
  return std::nullopt;
}

}  // namespace lacuna
