// The datasets that are built in, by name.
#include <string>

#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/sparse/labelled_sparse.hpp"
#include "lacuna/framework/data/types/cifar.h"
#include "lacuna/framework/data/types/colour_glyphs.hpp"
#include "lacuna/framework/data/types/csv.h"
#include "lacuna/framework/data/types/glyphs.h"
#include "lacuna/framework/data/types/hdf5_dataset.h"
#include "lacuna/framework/data/types/image_folder.hpp"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/data/types/mnist.h"
#include "lacuna/framework/data/types/npz_dataset.hpp"
#include "lacuna/framework/data/types/synthetic.h"
#include "lacuna/framework/data/types/text_dataset.hpp"

namespace lacuna {
namespace {

// Examples that are generated, as many as requested.
DatasetType drawn_dataset(DataSplits (*load)(const Config&, uint64_t)) {
  DatasetType type{.load = load};
  type.split_keys.push_back("data.train_size");
  return type;
}

}  // namespace

std::vector<std::string> split_keys_with_test() {
  std::vector<std::string> keys = DatasetType().split_keys;
  keys.emplace_back("data.test");
  return keys;
}

DatasetRegistry& dataset_registry() {
  static DatasetRegistry registry("dataset");
  return registry;
}

const DatasetType& dataset_type(const Config& data) {
  static const DatasetType unknown;
  const Config type = data.peek("type");
  const auto found = dataset_registry().entries().find(type.text());
  const bool is_known = type.is_scalar() && found != dataset_registry().entries().end();
  return is_known ? found->second.make : unknown;
}

void register_datasets(DatasetRegistry& registry) {
  registry.add("mnist", "MNIST or Fashion-MNIST from its IDX files (plain or .gz) in data.dir",
               mnist_dataset());
  registry.add("cifar10", "CIFAR-10 from its binary files in data.dir", cifar10_dataset());
  registry.add("cifar100", "CIFAR-100 from its binary files in data.dir", cifar100_dataset());
  registry.add("image_folder", "image files (PNG, JPEG, WebP, GIF), a folder for each class",
               image_folder_dataset());
  registry.add("csv", "tables with a label or target column: numbers, categories, dates",
               csv_dataset());
  registry.add("hdf5", "arrays in an HDF5 file, under names given in the config", hdf5_dataset());
  registry.add("npz", "arrays in a .npz file of NumPy's, under names given in the config",
               npz_dataset());
  registry.add("npy", "arrays in .npy files of NumPy's, one each", npy_dataset());
  registry.add("glyphs", "drawn 28x28 digits, made on the spot: no files needed",
               drawn_dataset(load_glyphs));
  registry.add("colour_glyphs", "drawn 32x32 digits in colour, made on the spot: no files needed",
               drawn_dataset(load_colour_glyphs));
  registry.add("synthetic", "noisy class means of any width, computed on request",
               drawn_dataset(load_synthetic));
  registry.add("text", "a long text, of which the next token is predicted", text_dataset());
  registry.add("tokens", "files of 16-bit tokens, of which the next one is predicted",
               tokens_dataset());
  registry.add("labelled_text", "sentences with a label each, in lines or CSV",
               labelled_text_dataset());
  registry.add("labelled_sparse",
               "sparse examples with several labels each, of up to a million classes",
               labelled_sparse_dataset());
}

}  // namespace lacuna
