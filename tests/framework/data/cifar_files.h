// Small data sets in the files of CIFAR-10 and CIFAR-100.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace lacuna {

/// A folder with CIFAR-10's files: two records each, with the labels n and n + 1 in file n (the
/// test file is 0).
inline void write_cifar10(const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (int file = 0; file <= 5; ++file) {
    const std::string name =
        file == 0 ? "test_batch.bin" : "data_batch_" + std::to_string(file) + ".bin";
    std::ofstream out(folder + "/" + name, std::ios::binary);
    for (int i = 0; i < 2; ++i) {
      out << static_cast<char>(file + i) << std::string(3072, static_cast<char>(20 * file + i));
    }
  }
}

/// A folder with CIFAR-100's files: three records each, with the coarse labels 17 to 19 and the
/// fine ones 97 to 99.
inline void write_cifar100(const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const char* name : {"train.bin", "test.bin"}) {
    std::ofstream out(folder + "/" + name, std::ios::binary);
    for (int i = 0; i < 3; ++i) {
      out << static_cast<char>(17 + i) << static_cast<char>(97 + i)
          << std::string(3072, static_cast<char>(i));
    }
  }
}

}  // namespace lacuna
