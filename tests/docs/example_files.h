// The files that the examples of the documents name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/data/cifar_files.h"
#include "framework/data/data_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "temporary_folder.h"

namespace lacuna::documents {

namespace fs = std::filesystem;

/// In a folder that becomes the current one.
class ExampleFiles {
 public:
  ExampleFiles() : before_(fs::current_path()) {
    fs::create_directory(folder_ / "data");
    fs::create_directory(folder_ / "data/mnist");
    write_mnist("train", 16);
    write_mnist("t10k", 8);
    write_cifar10(folder_ / "data/cifar/cifar-10-batches-bin");
    write_cifar100(folder_ / "data/cifar/cifar-100-binary");
    for (const char* split : {"train", "val", "test"}) write_images(split);
    const std::string table = "length,width,species\n1,2,0\n3,1,1\n2,2,2\n4,1,0\n";
    folder_.write("data/train.csv", table);
    folder_.write("data/test.csv", table);
    folder_.write("data/prices.csv", "rooms,age,price\n3,10,0.5\n5,2,0.9\n");
    folder_.write("data/houses.csv",
                  "id,rooms,colour,sold,price\n1,3,red,2024-03-01,0.5\n2,,blue,2023-01-02,0.9\n");
    write_texts();
    fs::current_path(folder_.path());
    write_arrays();
    write_weights();
  }
  ~ExampleFiles() { fs::current_path(before_); }
  ExampleFiles(const ExampleFiles&) = delete;
  ExampleFiles& operator=(const ExampleFiles&) = delete;

 private:
  void write_mnist(const std::string& split, uint32_t count) {
    folder_.write("data/mnist/" + split + "-images-idx3-ubyte",
                  ::lacuna::test::idx_images(count, 28, 28, std::string(count * 28 * 28, '\x20')));
    folder_.write("data/mnist/" + split + "-labels-idx1-ubyte",
                  ::lacuna::test::idx_labels(count, std::string(count, '\1')));
  }

  void write_images(const std::string& split) {
    for (const char* name : {"/cat", "/dog"}) {
      fs::create_directories(folder_ / ("data/images/" + split + name));
      folder_.write("data/images/" + split + name + "/1.png", plain_png(9, 7, 1, 2, 3));
    }
  }

  void write_texts() {
    std::string words;
    for (int i = 0; i < 400; ++i) words += i % 3 == 0 ? "to be or\n" : "not to be ";
    folder_.write("data/play.txt", words);
    fs::create_directory(folder_ / "data/tokens");
    for (const char* split : {"train", "val"}) {
      folder_.write(std::string("data/tokens/") + split + ".bin", std::string(2 * 1100, '\0'));
    }
    folder_.write("data/vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
    folder_.write("data/merges.txt", "a b\n");
    for (const char* split : {"train", "dev", "test"}) {
      folder_.write(std::string("data/") + split + ".txt", "0 dull\n1 a fine play\n");
    }
    folder_.write("data/extreme.txt", "3 40 30\n1,29 3:0.5 7:1\n 0:1\n12 39:0.25 0:1\n");
    folder_.write("data/reviews.csv", "stars,review\n0,dull\n1,\"a fine, fine play\"\n");
    folder_.write("data/news.csv", "2,Cup,They won\n1,Peace,\"Talks, at last\"\n");
    folder_.write("data/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\n");
  }

  static void write_arrays() {
    Hdf5File file = Hdf5File::create("data/arrays.h5");
    const std::vector<int64_t> labels = {0, 2, 1};
    for (const char* split : {"train_", "test/"}) {
      file.write(std::string(split) + "inputs", Tensor::zeros(Shape{3, 2, 2}));
      file.write(std::string(split) + "targets", Shape{3}, labels);
    }
    file.close();
    write_npz("data/arrays.npz", {{"x_train", Tensor::zeros(Shape{3, 2, 2})},
                                  {"y_train", labels},
                                  {"x_test", Tensor::zeros(Shape{3, 2, 2})},
                                  {"y_test", labels}});
    std::ofstream("data/x.npy", std::ios::binary)
        << render_npy_header("<f4", std::vector<int64_t>{3, 2}) << std::string(24, '\0');
    std::ofstream("data/y.npy", std::ios::binary)
        << render_npy_header("|u1", std::vector<int64_t>{3}) << std::string("\0\2\1", 3);
  }

  // For `init_from`, under the names that `rename` is shown with.
  static void write_weights() {
    fs::create_directory("weights");
    write_safetensors("weights/pretrained.safetensors",
                      {{"module.trunk.weight", Tensor::zeros({30, 784})},
                       {"module.trunk.bias", Tensor::zeros({30})},
                       {"module.fc2.weight", Tensor::zeros({1000, 30})},
                       {"module.fc2.bias", Tensor::zeros({1000})}});
  }

  TemporaryFolder folder_;
  fs::path before_;
};

}  // namespace lacuna::documents
