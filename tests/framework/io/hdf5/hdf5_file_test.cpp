#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "framework/io/file_size_limit.h"
#include "lacuna/framework/core/error.h"
#include "paths.h"
#include "temporary_folder.h"

namespace lacuna::hdf5_file_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = std::string(kSourceFolder) + "/tests/golden/";

template <class ErrorType, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "no error";
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_sample(const std::string& path, const Hdf5CreateOptions& options = {}) {
  Hdf5File file = Hdf5File::create(path, options);
  file.write("/model/fc1.weight", Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  file.write("model/fc1.weight_mask", {2, 3}, std::vector<uint8_t>{1, 0, 1, 0, 0, 255},
             Compression::Deflate);
  file.write("counts", {3}, std::vector<int64_t>{-1, 0, std::numeric_limits<int64_t>::max()});
  file.write_number("a/b/c/number", 0.1);
  file.write_text("text", "ünï\n");
  file.write_attribute("/", "config", std::string(100'000, 'c'));
  file.write_attribute("/model", "layout", "csr");
  file.write_attribute("/", "step", int64_t{42});
  file.write_attribute("/counts", "scale", 0.5);
  file.close();
}

TEST(Hdf5File, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_EQ(file.path(), folder / "a.h5");
  EXPECT_THAT(file.children("/"), ElementsAre("a", "counts", "model", "text"));
  EXPECT_THAT(file.children("model"), ElementsAre("fc1.weight", "fc1.weight_mask"));
  EXPECT_TRUE(file.is_group("/a/b") && !file.is_group("text") && !file.is_group("nothing/x"));
  EXPECT_TRUE(file.exists("/") && file.exists("a/b/c/number"));
  EXPECT_FALSE(file.exists("a/x/c") || file.exists("text/inside") || file.exists("model/fc1"));
  EXPECT_EQ(file.shape("model/fc1.weight"), Shape({2, 3}));
  EXPECT_EQ(file.shape("text").rank(), 0);
  EXPECT_THAT(file.read_floats("model/fc1.weight").to_vector(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(file.read_bytes("model/fc1.weight_mask"), ElementsAre(1, 0, 1, 0, 0, 255));
  EXPECT_THAT(file.read_integers("model/fc1.weight_mask"), ElementsAre(1, 0, 1, 0, 0, 255));
  EXPECT_THAT(file.read_floats("model/fc1.weight_mask").to_vector(),
              ElementsAre(1, 0, 1, 0, 0, 255));
  EXPECT_THAT(file.read_integers("counts"),
              ElementsAre(-1, 0, std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(file.read_number("a/b/c/number"), 0.1);
  EXPECT_EQ(file.read_text("text"), "ünï\n");
  EXPECT_EQ(file.attribute_text("/", "config"), std::string(100'000, 'c'));
  EXPECT_EQ(file.attribute_text("model", "layout"), "csr");
  EXPECT_EQ(file.attribute_integer("/", "step"), 42);
  EXPECT_EQ(file.attribute_number("/", "step"), 42);
  EXPECT_EQ(file.attribute_number("counts", "scale"), 0.5);
  EXPECT_TRUE(file.has_attribute("/", "step"));
  EXPECT_FALSE(file.has_attribute("/", "steps"));
}

TEST(Hdf5File, KnowsElementTypes) {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_EQ(file.type("model/fc1.weight"), Hdf5Type::Float);
  EXPECT_EQ(file.type("counts"), Hdf5Type::Integer);
  EXPECT_EQ(file.type("text"), Hdf5Type::Text);
  EXPECT_TRUE(file.is_uint8("model/fc1.weight_mask"));
  EXPECT_FALSE(file.is_uint8("counts"));
  EXPECT_FALSE(file.is_uint32("counts"));
  EXPECT_EQ(file.element_bytes("model/fc1.weight"), 4u);
  EXPECT_EQ(file.element_bytes("a/b/c/number"), 8u);
}

TEST(Hdf5File, ScalarsAndEmptyArraysWork) {
  const TemporaryFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.write("scalar", Tensor::scalar(2.5f));
  out.write("none", Tensor::empty({0, 7}));
  out.write("no_bytes", {3, 0}, std::span<const uint8_t>(), Compression::Deflate);
  out.write("byte", Shape(), std::vector<uint8_t>{9}, Compression::Deflate);
  out.write("no_integers", {0}, std::span<const int64_t>());
  out.write("integer", Shape(), std::vector<int64_t>{-7});
  out.write("indices", {2}, std::vector<uint32_t>{4'000'000'000u, 1});
  out.write_text("no_text", "");
  out.close();
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_EQ(file.shape("scalar").rank(), 0);
  EXPECT_EQ(file.read_floats("scalar").item(), 2.5f);
  EXPECT_EQ(file.read_floats("none").shape(), Shape({0, 7}));
  EXPECT_EQ(file.shape("no_bytes"), Shape({3, 0}));
  EXPECT_TRUE(file.read_bytes("no_bytes").empty());
  EXPECT_THAT(file.read_bytes("byte"), ElementsAre(9));
  EXPECT_TRUE(file.read_integers("no_integers").empty());
  EXPECT_THAT(file.read_integers("integer"), ElementsAre(-7));
  EXPECT_TRUE(file.is_uint32("indices") && !file.is_uint32("integer"));
  EXPECT_THAT(file.read_indices("indices"), ElementsAre(4'000'000'000u, 1));
  EXPECT_THAT(file.read_integers("indices"), ElementsAre(4'000'000'000, 1));
  EXPECT_EQ(file.read_text("no_text"), "");
}

TEST(Hdf5File, DeflatedChunksKeepEveryByteOfAwkwardShapes) {
  const TemporaryFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  const std::vector<Shape> shapes = {{3, 1048583}, {1048583}, {2, 3, 524309}, {1, 1, 1}, {1031, 7}};
  std::vector<std::vector<uint8_t>> arrays;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<uint8_t>& bytes = arrays.emplace_back(static_cast<size_t>(shapes[i].numel()));
    for (size_t j = 0; j < bytes.size(); ++j) bytes[j] = (j * 2654435761u >> 16) % 11 == 0;
    out.write(std::to_string(i), shapes[i], bytes, Compression::Deflate);
  }
  out.close();
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(file.shape(std::to_string(i)), shapes[i]);
    EXPECT_EQ(file.read_bytes(std::to_string(i)), arrays[i]) << shapes[i].to_string();
  }
  EXPECT_LT(std::filesystem::file_size(folder / "a.h5"), 4'000'000u);
}

TEST(Hdf5File, WritesBatchSlabsRowMajor) {
  const TemporaryFolder folder;
  const Tensor values = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4});
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.write("x", values.to(Order::BatchSlabs));
  out.close();
  EXPECT_EQ(Hdf5File::open(folder / "a.h5").read_floats("x").to_vector(), values.to_vector());
}

TEST(Hdf5File, SameContentGivesSameBytes) {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  write_sample(folder / "b.h5");
  EXPECT_EQ(content(folder / "a.h5"), content(folder / "b.h5"));
}

TEST(Hdf5File, LeavesAUserBlockFree) {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5", {.user_block_bytes = 1024});
  EXPECT_EQ(content(folder / "a.h5").substr(0, 1024), std::string(1024, '\0'));
  EXPECT_EQ(Hdf5File::open(folder / "a.h5").read_text("text"), "ünï\n");
  EXPECT_THAT(
      message_of<StateError>([&] { Hdf5File::create(folder / "b.h5", {.user_block_bytes = 100}); }),
      HasSubstr("user_block_bytes must be 0 or a power of two from 512, found 100"));
}

// Written by h5py: text of variable length, integer and float attributes, integers of 8 and 64
// bits.
TEST(Hdf5File, ReadsFilesOfH5py) {
  const Hdf5File schedules = Hdf5File::open(kGolden + "schedules.h5");
  EXPECT_TRUE(schedules.is_uint8("cycling/is_update"));
  EXPECT_THAT(schedules.attribute_text("cycling", "config"), "[0.3, 0.5, 0.8]");
  EXPECT_EQ(schedules.shape("hyper/00/steps"), Shape({13}));
  EXPECT_EQ(schedules.read_integers("hyper/00/steps").size(), 13u);
  EXPECT_EQ(schedules.read_floats("hyper/00/values").numel(), 13);
}

TEST(Hdf5File, SaysWhyAFileCannotBeOpened) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& path) {
    return message_of<DataError>([&] { Hdf5File::open(path); });
  };
  EXPECT_EQ(open(folder / "none.h5"),
            "cannot open '" + folder / "none.h5" + "': No such file or directory");
  EXPECT_EQ(open(folder.path()), "cannot open '" + folder.path() + "': it is a folder");
  std::ofstream(folder / "text.h5") << "not HDF5";
  EXPECT_EQ(open(folder / "text.h5"),
            "cannot open '" + folder / "text.h5" + "': it is not an HDF5 file");
  std::ofstream(folder / "empty.h5").flush();
  EXPECT_THAT(open(folder / "empty.h5"), HasSubstr("it is not an HDF5 file"));
}

TEST(Hdf5File, SaysWhyADatasetCannotBeRead) {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  const auto data_error = [](auto call) { return message_of<DataError>(call); };
  EXPECT_EQ(data_error([&] { file.read_floats("nothing/here"); }),
            folder / "a.h5" + ": nothing/here: there is no object of that name");
  EXPECT_THAT(data_error([&] { file.read_floats("model"); }),
              HasSubstr("model: expected a dataset, found a group"));
  EXPECT_THAT(data_error([&] { file.children("text"); }),
              HasSubstr("text: expected a group, found a dataset"));
  EXPECT_THAT(data_error([&] { file.read_floats("text"); }),
              HasSubstr("expected numbers, found text"));
  EXPECT_THAT(data_error([&] { file.read_integers("model/fc1.weight"); }),
              HasSubstr("expected integers, found floating-point numbers"));
  EXPECT_THAT(data_error([&] { file.read_bytes("counts"); }),
              HasSubstr("expected unsigned bytes (uint8), found integers of 64 bits"));
  EXPECT_THAT(data_error([&] { file.read_indices("counts"); }),
              HasSubstr("expected unsigned integers of 32 bits (uint32), found integers of 64 "
                        "bits"));
  EXPECT_THAT(data_error([&] { file.read_text("counts"); }),
              HasSubstr("expected text, found integers of 64 bits"));
  EXPECT_THAT(data_error([&] { file.read_number("counts"); }),
              HasSubstr("expected a single value, found the shape [3]"));
  EXPECT_THAT(data_error([&] { file.attribute_text("/", "confg"); }),
              HasSubstr("there is no attribute 'confg'"));
  EXPECT_THAT(data_error([&] { file.attribute_integer("counts", "scale"); }),
              HasSubstr("counts@scale: expected integers, found floating-point numbers"));
}

TEST(Hdf5File, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  const auto state_error = [](auto call) { return message_of<StateError>(call); };
  EXPECT_EQ(state_error([&] { Hdf5File::create(folder / "none/a.h5"); }),
            "cannot write '" + folder / "none/a.h5" + "': No such file or directory");
  Hdf5File file = Hdf5File::create(folder / "a.h5");
  file.write_number("x", 1);
  EXPECT_THAT(state_error([&] { file.write_number("x", 1); }),
              AllOf(HasSubstr("a.h5': x: "), HasSubstr("exists")));
  EXPECT_NE(state_error([&] { file.write_number("x/y", 1); }), "no error");
  EXPECT_THAT(state_error([&] { file.write("y", {3}, std::vector<int64_t>{1}); }),
              HasSubstr("y: 1 values for the shape [3]"));
  EXPECT_THAT(state_error([&] { file.write("y", Tensor()); }), HasSubstr("tensor is undefined"));
  EXPECT_THAT(state_error([&] { file.write_text("y", std::string("a\0b", 3)); }),
              HasSubstr("zero byte"));
  EXPECT_THAT(state_error([&] { file.write_attribute("z", "a", 1.0); }),
              HasSubstr("z@a: there is nothing that could hold it"));
  file.close();
  file.close();
  EXPECT_THAT(state_error([&] { file.write_number("z", 1); }), HasSubstr("is closed"));
  EXPECT_THAT(state_error([&] { file.exists("z"); }), HasSubstr("is closed"));
  Hdf5File reading = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(state_error([&] { reading.write_number("z", 1); }),
              HasSubstr("the file was opened for reading"));
  EXPECT_EQ(reading.read_number("x"), 1);
}

TEST(Hdf5File, CanBeMoved) {
  const TemporaryFolder folder;
  Hdf5File first = Hdf5File::create(folder / "a.h5");
  Hdf5File second = std::move(first);
  second.write_number("x", 1);
  first = Hdf5File::create(folder / "b.h5");
  first = std::move(second);
  first.close();
  EXPECT_EQ(Hdf5File::open(folder / "a.h5").read_number("x"), 1);
}

// HDF5 1.10 by itself crashes here, or at exit.
TEST(Hdf5File, SurvivesADiskThatIsFull) {
  const TemporaryFolder folder;
  write_sample(folder / "whole.h5");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(folder / "whole.h5"));
  for (int64_t bytes = 1; bytes < size; bytes = bytes * 3 / 2 + 1) {
    std::string message;
    {
      const FileSizeLimit limit(bytes);
      message = message_of<StateError>([&] { write_sample(folder / "a.h5"); });
    }
    EXPECT_THAT(message, AllOf(HasSubstr("a.h5"), HasSubstr("File too large"))) << bytes;
  }
  write_sample(folder / "a.h5");
  EXPECT_EQ(content(folder / "a.h5"), content(folder / "whole.h5"));
}

}  // namespace
}  // namespace lacuna::hdf5_file_test
