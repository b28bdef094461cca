#include "lacuna/framework/data/types/image_folder.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "framework/data/data_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::image_folder_test {
namespace {

namespace fs = std::filesystem;

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Folders of images of one colour.
class ImageFolder : public ::testing::Test {
 protected:
  void add(const std::string& file, uint8_t red, uint8_t green = 0, uint8_t blue = 0) const {
    fs::create_directories(fs::path(folder_ / file).parent_path());
    folder_.write(file, plain_png(4, 3, red, green, blue));
  }
  // Three classes, and names that are not in order.
  void add_split(const std::string& split) const {
    add(split + "/dog/b.png", 20);
    add(split + "/cat/z.png", 12);
    add(split + "/cat/a.jpg", 11);
    add(split + "/Bird/x", 1, 2, 3);
  }
  Config config(const std::string& key = "dir", const std::string& below = "") const {
    return Config::map({{key, folder_.path() + below}, {"size", 2}});
  }
  static std::string error(const Config& data) {
    return message_of<DataError>([&] { load_image_folder(data, 0); });
  }
  static std::string config_error(const Config& data) {
    return message_of<ConfigError>([&] { load_image_folder(data, 0); });
  }
  static const Examples& examples(const std::shared_ptr<const Dataset>& dataset) {
    return dynamic_cast<const ArrayDataset&>(*dataset).examples();
  }
  // The first byte of each image.
  static std::vector<int> reds(const std::shared_ptr<const Dataset>& dataset) {
    const Examples& of = examples(dataset);
    std::vector<int> first;
    for (int64_t i = 0; i < of.size(); ++i) {
      first.push_back(std::get<0>(of.inputs)[static_cast<size_t>(i * of.example_shape.numel())]);
    }
    return first;
  }

  TemporaryFolder folder_;
};

TEST_F(ImageFolder, OrdersClassesAndFilesByName) {
  add_split("train");
  const DataSplits splits = load_image_folder(config(), 0);
  EXPECT_EQ(splits.train->example_shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(splits.train->num_classes(), 3);
  EXPECT_THAT(splits.train->class_names(), ElementsAre("Bird", "cat", "dog"));
  EXPECT_THAT(examples(splits.train).labels, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(reds(splits.train), ElementsAre(1, 11, 12, 20));
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.test, nullptr);
}

TEST_F(ImageFolder, HoldsBytesOfTheSizeAndChannelsAskedFor) {
  add_split("train");
  Config data = config();
  data.set("size", Config::list({1, 2}));
  EXPECT_THAT(
      std::get<0>(examples(load_image_folder(data, 0).train).inputs),
      ElementsAre(1, 1, 2, 2, 3, 3, 11, 11, 0, 0, 0, 0, 12, 12, 0, 0, 0, 0, 20, 20, 0, 0, 0, 0));
  data.set("channels", 1);
  const DataSplits grey = load_image_folder(data, 0);
  EXPECT_EQ(grey.train->example_shape(), (Shape{1, 1, 2}));
  EXPECT_THAT(reds(grey.train), ElementsAre(2, 3, 4, 6));  // 0.299 of red, 0.587 of green, …
}

TEST_F(ImageFolder, FindsTheSplitsOfAFolder) {
  for (const char* split : {"train", "val", "test"}) add_split(split);
  fs::remove_all(folder_ / "test/cat");  // a class may be missing where it is not learned
  folder_.write("README.md", "beside the splits");
  const DataSplits splits = load_image_folder(config(), 0);
  EXPECT_EQ(splits.validation->size(), 4);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.test->num_classes(), 3);
  EXPECT_THAT(examples(splits.test).labels, ElementsAre(0, 2));
}

TEST_F(ImageFolder, TakesTheSplitsFoldersOneByOne) {
  for (const char* split : {"a", "b", "c"}) add_split(split);
  Config data = config("train_dir", "/a");
  EXPECT_EQ(load_image_folder(data, 0).test, nullptr);
  data.set("validation_dir", folder_ / "b");
  data.set("test_dir", folder_ / "c");
  const DataSplits splits = load_image_folder(data, 0);
  EXPECT_EQ(splits.validation->size(), 4);
  EXPECT_EQ(splits.test->size(), 4);
  data.set("dir", folder_.path());
  EXPECT_THAT(config_error(data), HasSubstr("train_dir: cannot be combined with dir"));
}

TEST_F(ImageFolder, PassesHiddenFilesOver) {
  add_split("train");
  folder_.write("train/.DS_Store", "?");
  folder_.write("train/cat/.thumbnail", "?");
  folder_.write("train/cat/Thumbs.db", "?");
  folder_.write("train/dog/desktop.ini", "?");
  fs::create_directories(folder_ / "train/__MACOSX/cat");
  fs::create_directory(folder_ / "train/.cache");
  EXPECT_EQ(load_image_folder(config(), 0).train->size(), 4);
}

TEST_F(ImageFolder, SplitsOneFolderOfClasses) {
  if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  for (uint8_t i = 0; i < 10; ++i) {
    add("cat/" + std::to_string(i) + ".png", i);
    add("dog/" + std::to_string(i) + ".png", static_cast<uint8_t>(10 + i));
  }
  folder_.write("LICENSE", "beside the classes");
  Config data = config();
  data.set("type", "image_folder");
  data.set("validation", 0.1);
  data.set("test", 0.25);
  const auto first_pixels = [](const std::shared_ptr<const Dataset>& split) {
    std::vector<int> first;
    for (int64_t i = 0; i < split->size(); ++i) {
      const float value = split->gather(std::vector<int64_t>{i}).inputs.to_vector()[0];
      first.push_back(static_cast<int>(value * 255.0f + 0.5f));
    }
    return first;
  };
  const DataSplits splits = load_data(data, 7);
  EXPECT_EQ(splits.train->size(), 13);
  EXPECT_EQ(splits.validation->size(), 2);
  EXPECT_EQ(splits.test->size(), 5);
  EXPECT_THAT(splits.train->class_names(), ElementsAre("cat", "dog"));
  std::vector<int> all;
  for (const auto& split : {splits.train, splits.validation, splits.test}) {
    for (const int red : first_pixels(split)) all.push_back(red);
  }
  std::ranges::sort(all);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);  // each image once
  EXPECT_EQ(first_pixels(load_data(data, 7).test), first_pixels(splits.test));
  EXPECT_NE(first_pixels(load_data(data, 8).test), first_pixels(splits.test));
  EXPECT_TRUE(has_training_files(data));
  add("stray.png", 1);
  EXPECT_THAT(error(config()), HasSubstr("stray.png: a file outside the class folders"));
  fs::remove(folder_ / "stray.png");
  add("test/cat/1.png", 1);  // it is a folder of splits now
  EXPECT_THAT(error(config()), HasSubstr("cat: expected the folders train, val and test"));
  EXPECT_FALSE(has_training_files(data));
}

TEST_F(ImageFolder, RefusesFoldersThatCannotBe) {
  EXPECT_THAT(error(config()), HasSubstr(": holds no folders of images, one for each class"));
  EXPECT_THAT(error(config("dir", "/none")), HasSubstr("/none: no such folder"));
  EXPECT_THAT(error(config("train_dir", "/none")), HasSubstr("/none: no such folder"));
  fs::create_directory(folder_ / "train");
  EXPECT_THAT(error(config()), HasSubstr("train: holds no folders of images, one for each class"));
  add("train/cat/a.png", 1);
  EXPECT_THAT(error(config()),
              HasSubstr("train: holds only one class, 'cat'; classification needs two"));
  fs::create_directory(folder_ / "train/dog");
  EXPECT_THAT(error(config()), HasSubstr(folder_ / "train/dog" + ": this class has no images"));
  add("train/dog/more/a.png", 1);
  EXPECT_THAT(error(config()),
              HasSubstr("train/dog/more: a folder inside a class folder; expected images"));
  fs::remove_all(folder_ / "train/dog/more");
  fs::create_symlink("nowhere", folder_ / "train/dog/a.png");
  EXPECT_THAT(error(config()), HasSubstr("train/dog/a.png: neither a file nor a link to one"));
  fs::remove(folder_ / "train/dog/a.png");
  add("train/dog/a.png", 1);
  add("train/b.png", 1);
  EXPECT_THAT(error(config()), HasSubstr("train/b.png: a file outside the class folders"));
  fs::remove(folder_ / "train/b.png");
  add("test/dogs/a.png", 1);
  EXPECT_THAT(error(config()), HasSubstr("test/dogs: the training images have no class 'dogs'; did "
                                         "you mean 'dog'?"));
  fs::rename(folder_ / "test", folder_ / "tset");
  EXPECT_THAT(error(config()), AllOf(HasSubstr("tset: expected the folders train, val and test"),
                                     HasSubstr("data.test_dir")));
}

TEST_F(ImageFolder, RefusesAnImageBesideTheSplits) {
  add_split("train");
  add("stray.png", 1);
  EXPECT_THAT(error(config()), HasSubstr("stray.png: an image outside the class folders; "));
}

TEST_F(ImageFolder, NamesTheFileThatIsNoImage) {
  add_split("train");
  folder_.write("train/cat/notes.txt", "cats");
  EXPECT_THAT(error(config()),
              HasSubstr("train/cat/notes.txt: not a PNG, JPEG, WebP or GIF image"));
  folder_.write("train/cat/notes.txt", "");
  EXPECT_THAT(error(config()), HasSubstr("train/cat/notes.txt: the file is empty"));
  folder_.write("train/cat/notes.txt", plain_png(4, 4, 1, 2, 3).substr(0, 60));
  EXPECT_THAT(error(config()), HasSubstr("train/cat/notes.txt: the PNG image is damaged"));
}

TEST_F(ImageFolder, RefusesKeysOutOfRange) {
  add_split("train");
  Config data = config();
  data.erase("size");
  EXPECT_THAT(config_error(data), HasSubstr("size: a required key is missing"));
  for (const Config& size : {Config(0), Config(4097), Config::list({3}), Config::list({3, 0})}) {
    data.set("size", size);
    EXPECT_THAT(config_error(data),
                HasSubstr("size: expected [rows, columns] or one number, each from 1 to 4096"));
  }
  data.set("size", 2);
  data.set("channels", 4);
  EXPECT_THAT(config_error(data), HasSubstr("channels: expected 3 (red, green, blue) or 1 (grey)"));
  EXPECT_THAT(config_error(Config::map({{"size", 2}})),
              HasSubstr("a folder is missing: train_dir (and validation_dir, test_dir), or dir"));
}

TEST_F(ImageFolder, ReadsSingleImages) {
  add("a.png", 9, 8, 7);
  const std::vector<fs::path> paths = {folder_ / "a.png"};
  const Examples one = read_images(paths, {.channels = 3, .height = 1, .width = 1});
  EXPECT_EQ(one.size(), 1);
  EXPECT_THAT(std::get<0>(one.inputs), ElementsAre(9, 8, 7));
  EXPECT_THAT(message_of<StateError>([&] { read_images(paths, {.channels = 2}); }),
              HasSubstr("images cannot be converted to 2 channels of 0 x 0 pixels"));
}

}  // namespace
}  // namespace lacuna::image_folder_test
