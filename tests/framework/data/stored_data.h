// Small data of every type, as it lies on the disk, and single values of it that are another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "framework/data/cifar_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "temporary_folder.h"

namespace lacuna {

/// One value on the disk that is another: the whole file with it.
struct Flip {
  std::string what;  ///< "training inputs", "test labels or targets"
  std::string path, bytes;
};

struct StoredData {
  std::string name;     ///< in messages
  std::string type;     ///< in the registry
  std::string section;  ///< `data` in YAML
  std::string model;    ///< one that takes it
  std::vector<Flip> flips = {};
};

namespace stored {

inline const std::string kDense = "[flatten, {type: linear}]";
inline const std::string kTokens = "[{type: token_embedding, features: 4}, {type: linear}]";
inline const std::string kSentences =
    "[{type: token_embedding, features: 4}, {type: mean_pool}, {type: linear}]";

/// A flip that puts `bytes` at a place of a file.
inline Flip at(const std::string& what, const std::string& path, size_t place,
               const std::string& bytes) {
  std::string all = read_text(path);
  all.replace(place, bytes.size(), bytes);
  return {.what = what, .path = path, .bytes = all};
}

inline std::string table(int rows, const std::string& answer = "") {
  std::string text = "a,b,kind\n";
  for (int i = 0; i < rows; ++i) {
    text += std::to_string(i % 7) + ".25," + std::to_string(100 - i) + "," + std::to_string(i % 3) +
            answer + "\n";
  }
  return text;
}

// `answer` makes targets of labels.
inline StoredData csv(const TemporaryFolder& folder, const std::string& name,
                      const std::string& answer) {
  const std::string train = folder.write(name + "_train.csv", table(40, answer));
  const std::string test = folder.write(name + "_test.csv", table(12, answer));
  const size_t first = std::string("a,b,kind\n").size();
  const std::string answers = "labels or targets";
  return {
      .name = name,
      .type = "csv",
      .section = "{type: csv, train: " + train + ", test: " + test + ", validation: 8" +
                 (answer.empty() ? "}" : ", task: regression, normalize_targets: true}"),
      .model = kDense,
      .flips = {at("training inputs", train, first, "3"),
                at("training " + answers, train, read_text(train).size() - 2 - answer.size(), "2"),
                at("test inputs", test, first, "3"),
                at("test " + answers, test, read_text(test).size() - 2 - answer.size(), "1")}};
}

struct Arrays {
  std::vector<float> inputs = {}, test_inputs = {};
  std::vector<int64_t> labels = {}, test_labels = {};
};

inline void write_arrays(const std::string& path, const Arrays& arrays) {
  Hdf5File file = Hdf5File::create(path);
  const auto write = [&](const std::string& split, const std::vector<float>& inputs,
                         const std::vector<int64_t>& labels) {
    const auto size = static_cast<int64_t>(labels.size());
    const Shape shape{size, static_cast<int64_t>(inputs.size()) / size};
    file.write(split + "_inputs", Tensor::from(shape, inputs));
    file.write(split + "_targets", Shape{size}, std::span<const int64_t>(labels));
  };
  write("train", arrays.inputs, arrays.labels);
  write("test", arrays.test_inputs, arrays.test_labels);
  file.close();
}

inline Arrays some_arrays() {
  Arrays arrays{.inputs = std::vector<float>(120), .test_inputs = std::vector<float>(30)};
  std::iota(arrays.inputs.begin(), arrays.inputs.end(), 0.5f);
  for (int i = 0; i < 40; ++i) arrays.labels.push_back(i % 3);
  for (int i = 0; i < 10; ++i) arrays.test_labels.push_back(i % 3);
  return arrays;
}

// Each of the arrays with one value that is another.
inline void change_arrays(
    const std::function<void(const std::string& what, const Arrays& changed)>& use) {
  const auto add = [&](const std::string& what, const std::function<void(Arrays&)>& change) {
    Arrays changed = some_arrays();
    change(changed);
    use(what, changed);
  };
  add("training inputs", [](Arrays& a) { a.inputs.back() += 1.0f; });
  add("training labels or targets", [](Arrays& a) { a.labels[17] = 0; });
  add("test inputs", [](Arrays& a) { a.test_inputs[5] = 3.0f; });
  add("test labels or targets", [](Arrays& a) { a.test_labels[0] = 2; });
}

// Of one file that `write` writes.
inline StoredData arrays_in(const TemporaryFolder& folder, const std::string& type,
                            const std::string& file,
                            void (*write)(const std::string& path, const Arrays& arrays)) {
  const std::string path = folder / ("arrays." + file), other = folder / ("other." + file);
  write(path, some_arrays());
  StoredData data{.name = type,
                  .type = type,
                  .section = "{type: " + type + ", path: " + path +
                             ", test_inputs: test_inputs, test_targets: test_targets, "
                             "normalize: standard, validation: 8}",
                  .model = kDense};
  change_arrays([&](const std::string& what, const Arrays& changed) {
    write(other, changed);
    data.flips.push_back({.what = what, .path = path, .bytes = read_text(other)});
  });
  return data;
}

inline StoredData hdf5(const TemporaryFolder& folder) {
  return arrays_in(folder, "hdf5", "h5", write_arrays);
}

inline StoredData npz(const TemporaryFolder& folder) {
  return arrays_in(folder, "npz", "npz", [](const std::string& path, const Arrays& arrays) {
    write_npz(path, {{"train_inputs", Tensor::from({40, 3}, arrays.inputs)},
                     {"train_targets", arrays.labels},
                     {"test_inputs", Tensor::from({10, 3}, arrays.test_inputs)},
                     {"test_targets", arrays.test_labels}});
  });
}

inline StoredData npy(const TemporaryFolder& folder) {
  const auto bytes_of = [](const std::string& descr, const std::vector<int64_t>& shape,
                           const auto& values) {
    return render_npy_header(descr, shape) +
           std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(values[0]));
  };
  const auto files = [&](const Arrays& arrays) {
    return std::vector<std::pair<std::string, std::string>>{
        {"x_train", bytes_of("<f4", {40, 3}, arrays.inputs)},
        {"y_train", bytes_of("<i8", {40}, arrays.labels)},
        {"x_test", bytes_of("<f4", {10, 3}, arrays.test_inputs)},
        {"y_test", bytes_of("<i8", {10}, arrays.test_labels)}};
  };
  StoredData data{.name = "npy", .type = "npy", .section = "{type: npy", .model = kDense};
  const auto before = files(some_arrays());
  for (const auto& [key, bytes] : before) {
    data.section += ", " + key + ": " + folder.write(key + ".npy", bytes);
  }
  data.section += ", normalize: standard, validation: 8}";
  change_arrays([&](const std::string& what, const Arrays& changed) {
    const auto after = files(changed);
    for (size_t i = 0; i < before.size(); ++i) {
      if (after[i] == before[i]) continue;
      data.flips.push_back(
          {.what = what, .path = folder / (after[i].first + ".npy"), .bytes = after[i].second});
    }
  });
  return data;
}

// Sizes as IDX files have them.
inline std::string big_endian(std::initializer_list<uint32_t> sizes) {
  std::string bytes;
  for (const uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
  }
  return bytes;
}

inline StoredData mnist(const TemporaryFolder& folder) {
  const auto write = [&](const std::string& split, uint32_t count) {
    std::string pixels, labels;
    for (uint32_t i = 0; i < 16 * count; ++i) pixels += static_cast<char>(i * 37 % 256);
    for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
    folder.write(split + "-images-idx3-ubyte", big_endian({0x803, count, 4, 4}) + pixels);
    folder.write(split + "-labels-idx1-ubyte", big_endian({0x801, count}) + labels);
  };
  write("train", 40), write("t10k", 10);
  return {.name = "mnist",
          .type = "mnist",
          .section = "{type: mnist, dir: " + folder.path() + ", validation: 8}",
          .model = kDense,
          .flips = {at("training inputs", folder / "train-images-idx3-ubyte", 16, "\x07"),
                    at("training labels or targets", folder / "train-labels-idx1-ubyte", 8, "\x07"),
                    at("test inputs", folder / "t10k-images-idx3-ubyte", 16 + 159, "\x07"),
                    at("test labels or targets", folder / "t10k-labels-idx1-ubyte", 8, "\x07")}};
}

inline StoredData cifar(const TemporaryFolder& folder, const std::string& type) {
  const std::string dir = folder / type;
  const bool is_10 = type == "cifar10";
  is_10 ? write_cifar10(dir) : write_cifar100(dir);
  const std::string train = dir + (is_10 ? "/data_batch_4.bin" : "/train.bin");
  const std::string test = dir + (is_10 ? "/test_batch.bin" : "/test.bin");
  const size_t label = is_10 ? 0 : 1;
  return {.name = type,
          .type = type,
          .section = "{type: " + type + ", dir: " + dir + "}",
          .model = kDense,
          .flips = {at("training inputs", train, 1000, "\x07"),
                    at("training labels or targets", train, label, "\x07"),
                    at("test inputs", test, 3072 + label, "\x07"),
                    at("test labels or targets", test, label, "\x07")}};
}

inline StoredData images(const TemporaryFolder& folder) {
  for (const char* split : {"train", "val", "test"}) {
    for (const char* kind : {"cat", "dog"}) {
      const std::string dir = std::string("images/") + split + "/" + kind;
      std::filesystem::create_directories(folder / dir);
      for (uint8_t i = 0; i < 4; ++i) {
        folder.write(dir + "/" + std::to_string(i) + ".png",
                     plain_png(4, 4, static_cast<uint8_t>(40 * i), 9, *kind == 'c' ? 1 : 200));
      }
    }
  }
  std::string rows(48, '\x05');
  rows[7] = '\x06';
  const std::string other = png_bytes({.width = 4, .height = 4}, rows), dir = folder / "images";
  return {.name = "image_folder",
          .type = "image_folder",
          .section = "{type: image_folder, dir: " + dir + ", size: 4}",
          .model = kDense,
          .flips = {{"training inputs", dir + "/train/dog/3.png", other},
                    {"validation inputs", dir + "/val/cat/0.png", other},
                    {"test inputs", dir + "/test/cat/2.png", other}}};
}

// 400 characters; the held-out parts are at the end, and one of them is changed in each part.
inline StoredData text(const TemporaryFolder& folder, const std::string& name,
                       const std::string& more) {
  std::string all;
  for (int i = 0; i < 400; ++i) all += "abcd"[i * i % 7 % 4];
  const std::string path = folder.write(name + ".txt", all);
  const auto other = [&](size_t place) { return std::string(all[place] == 'a' ? "b" : "a"); };
  return {.name = name,
          .type = "text",
          .section =
              "{type: text, path: " + path + ", context: 4, validation: 80, test: 80" + more + "}",
          .model = kTokens,
          .flips = {at("training inputs", path, 0, other(0)),
                    at("training inputs", path, 239, other(239)),
                    at("validation inputs", path, 250, other(250)),
                    at("test inputs", path, 399, other(399))}};
}

inline StoredData tokens(const TemporaryFolder& folder) {
  const auto bytes = [](int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += {static_cast<char>(i * i % 11), '\0'};
    return all;
  };
  std::filesystem::create_directory(folder / "tokens");
  const std::string train = folder.write("tokens/train.bin", bytes(200)),
                    validation = folder.write("tokens/val.bin", bytes(60)),
                    test = folder.write("tokens/test.bin", bytes(60));
  return {.name = "tokens",
          .type = "tokens",
          .section = "{type: tokens, dir: " + (folder / "tokens") + ", vocab_size: 16, context: 4}",
          .model = kTokens,
          .flips = {at("training inputs", train, 398, "\x0f"),
                    at("validation inputs", validation, 0, "\x0f"),
                    at("test inputs", test, 118, "\x0f")}};
}

inline std::string sentences(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += std::to_string(i % 2) + (i % 3 == 0 ? " to be or not" : " that is the question") + "\n";
  }
  return all;
}

inline StoredData labelled(const TemporaryFolder& folder, const std::string& name,
                           const std::string& more) {
  const std::string train = folder.write(name + "_train.txt", sentences(40)),
                    validation = folder.write(name + "_validation.txt", sentences(10)),
                    test = folder.write(name + "_test.txt", sentences(10));
  return {.name = name,
          .type = "labelled_text",
          .section = "{type: labelled_text, train: " + train + ", validation: " + validation +
                     ", test: " + test + ", max_length: 8" + more + "}",
          .model = kSentences,
          .flips = {at("training inputs", train, 2, "or"),
                    at("training labels or targets", train, 0, "1"),
                    at("validation inputs", validation, 2, "be"),
                    at("validation labels or targets", validation, 0, "1"),
                    at("test inputs", test, 2, "be"), at("test labels or targets", test, 0, "1")}};
}

// Of which the labels say nothing.
inline StoredData masked_sentences(const TemporaryFolder& folder) {
  StoredData data = labelled(folder, "masked_sentences",
                             ", tokenizer: characters, mask_fraction: 0.3, mask_token: '#'");
  data.model = kTokens;
  std::erase_if(data.flips, [](const Flip& flip) { return flip.what.ends_with("targets"); });
  return data;
}

inline StoredData pairs(const TemporaryFolder& folder) {
  std::string all = "first,second,kind\n";
  for (int i = 0; i < 40; ++i) all += i % 2 == 0 ? "to be,or not,0\n" : "that is,the question,1\n";
  const std::string train = folder.write("pairs.csv", all);
  const size_t row = std::string("first,second,kind\n").size();
  return {.name = "pairs",
          .type = "labelled_text",
          .section = "{type: labelled_text, train: " + train +
                     ", text_column: [first, second], label_column: kind, max_length: 12, "
                     "validation: 8}",
          .model = kSentences,
          // The same words, of which one has gone over to the other sentence.
          .flips = {at("training inputs", train, row, "to,be or"),
                    at("training labels or targets", train, row + 13, "1")}};
}

inline std::string sparse_examples(int count) {
  std::string all = std::to_string(count) + " 9 4\n";
  for (int i = 0; i < count; ++i) {
    all += std::to_string(i % 4) + " " + std::to_string(i % 9) + ":1.5\n";
  }
  return all;
}

inline StoredData labelled_sparse(const TemporaryFolder& folder) {
  const std::string train = folder.write("sparse_train.txt", sparse_examples(40)),
                    test = folder.write("sparse_test.txt", sparse_examples(12));
  const size_t first = std::string("40 9 4\n").size();  // "0 0:1.5", the first example
  const std::string answers = "labels or targets";
  return {
      .name = "labelled_sparse",
      .type = "labelled_sparse",
      .section = "{type: labelled_sparse, train: " + train + ", test: " + test + ", validation: 8}",
      .model = "[{type: embedding_bag, out_features: 4}, {type: linear}]",
      .flips = {at("training inputs", train, first + 2, "8"),
                at("training " + answers, train, first, "3"),
                at("test inputs", test, first + 4, "2"), at("test " + answers, test, first, "3")}};
}

inline StoredData generated(const std::string& type, const std::string& more = "") {
  return {
      .name = type,
      .type = type,
      .section = "{type: " + type + ", train_size: 40, test_size: 10, validation: 8" + more + "}",
      .model = kDense};
}

}  // namespace stored

/// At least one for each type that is built in.
inline std::vector<StoredData> all_stored_data(const TemporaryFolder& folder) {
  return {stored::csv(folder, "csv", ""),
          stored::csv(folder, "regression", ".5"),
          stored::hdf5(folder),
          stored::npz(folder),
          stored::npy(folder),
          stored::mnist(folder),
          stored::cifar(folder, "cifar10"),
          stored::cifar(folder, "cifar100"),
          stored::images(folder),
          stored::text(folder, "text", ""),
          stored::text(folder, "masked", ", mask_fraction: 0.3, mask_token: '#'"),
          stored::tokens(folder),
          stored::labelled(folder, "sentences", ", tokenizer: bytes"),
          stored::labelled(folder, "streamed", ", tokenizer: bytes, streamed: true"),
          stored::masked_sentences(folder),
          stored::pairs(folder),
          stored::labelled_sparse(folder),
          stored::generated("glyphs"),
          stored::generated("colour_glyphs"),
          stored::generated("synthetic", ", features: 8, classes: 3")};
}

}  // namespace lacuna
