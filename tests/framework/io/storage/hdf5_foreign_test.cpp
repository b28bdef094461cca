// Files with what lacuna itself never writes, made through the library directly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "temporary_folder.h"

namespace lacuna::hdf5_foreign_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

class Hdf5ForeignFile : public testing::Test {
 protected:
  Hdf5ForeignFile()
      : path_(folder_ / "a.h5"),
        file_(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}

  void add(const char* name, hid_t type, const std::vector<hsize_t>& sizes, const void* values) {
    add_in(name, type, H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
           values);
  }
  void add_in(const char* name, hid_t type, hid_t space, const void* values) {
    const hid_t dataset =
        H5Dcreate2(file_, name, type, space, H5P_DEFAULT, properties_, H5P_DEFAULT);
    if (values != nullptr) H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Sclose(space);
  }
  Hdf5File reopen() {
    H5Fclose(file_);
    return Hdf5File::open(path_);
  }

  TemporaryFolder folder_;
  std::string path_;
  hid_t file_;
  hid_t properties_ = H5P_DEFAULT;
};

TEST_F(Hdf5ForeignFile, NumbersOfEveryWidthAreConverted) {
  const int8_t bytes[] = {-1, 2};
  const uint64_t longs[] = {1, uint64_t{1} << 63};
  const double doubles[] = {0.5, 1e300};
  add("bytes", H5T_NATIVE_INT8, {2}, bytes);
  add("longs", H5T_NATIVE_UINT64, {2}, longs);
  add("doubles", H5T_NATIVE_DOUBLE, {2}, doubles);
  const Hdf5File file = reopen();
  EXPECT_THAT(file.read_integers("bytes"), ElementsAre(-1, 2));
  EXPECT_FALSE(file.is_uint8("bytes"));
  EXPECT_EQ(message_of([&] { file.read_integers("longs"); }),
            path_ + ": longs: a value does not fit in a signed 64-bit integer");
  EXPECT_THAT(file.read_floats("longs").to_vector(), ElementsAre(1.0f, 0x1.0p63f));
  EXPECT_THAT(file.read_floats("doubles").to_vector(),
              ElementsAre(0.5f, std::numeric_limits<float>::infinity()));
}

TEST_F(Hdf5ForeignFile, BooleansOfNumpyAreIntegers) {
  const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
  const int8_t zero = 0, one = 1;
  H5Tenum_insert(type, "FALSE", &zero);
  H5Tenum_insert(type, "TRUE", &one);
  const int8_t values[] = {1, 0, 1};
  add("flags", type, {3}, values);
  H5Tclose(type);
  const Hdf5File file = reopen();
  EXPECT_EQ(file.type("flags"), Hdf5Type::Integer);
  EXPECT_THAT(file.read_integers("flags"), ElementsAre(1, 0, 1));
  EXPECT_THAT(file.read_floats("flags").to_vector(), ElementsAre(1, 0, 1));
}

// Fewer values than the buffer holds in which the library converts them, more, and some that are
// larger than it.
TEST_F(Hdf5ForeignFile, AnyNumberAndWidthOfTextsIsRead) {
  const hid_t variable = H5Tcopy(H5T_C_S1), wide = H5Tcopy(H5T_C_S1);
  H5Tset_size(variable, H5T_VARIABLE);
  const size_t width = size_t{3} << 20;
  H5Tset_size(wide, width);
  std::vector<std::string> texts(70000);
  std::vector<const char*> pointers;
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] = std::to_string(i);
    pointers.push_back(texts[i].c_str());
  }
  add("one", variable, {1}, pointers.data() + 7);
  add("many", variable, {pointers.size()}, pointers.data());
  const std::string both = std::string(width - 1, 'a') + std::string(1, '\0') +
                           std::string(width - 1, 'b') + std::string(1, '\0');
  add("wide", wide, {2}, both.data());
  std::vector<double> numbers(200000);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  add("numbers", H5T_NATIVE_DOUBLE, {numbers.size()}, numbers.data());
  const Hdf5File file = reopen();
  EXPECT_THAT(file.read_texts("one"), ElementsAre("7"));
  EXPECT_EQ(file.read_texts("many"), texts);
  EXPECT_THAT(file.read_texts("wide"),
              ElementsAre(std::string(width - 1, 'a'), std::string(width - 1, 'b')));
  EXPECT_EQ(file.read_floats("numbers").to_vector(),
            std::vector<float>(numbers.begin(), numbers.end()));
}

TEST_F(Hdf5ForeignFile, FixedTextIsReadInEveryPadding) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 5);
  H5Tset_strpad(type, H5T_STR_NULLTERM);
  add_in("terminated", type, H5Screate(H5S_SCALAR), "ab\0xx");
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  add_in("full", type, H5Screate(H5S_SCALAR), "abcde");
  add_in("padded", type, H5Screate(H5S_SCALAR), "ab\0\0\0");
  H5Tset_strpad(type, H5T_STR_SPACEPAD);
  add("spaces", type, {1}, "ab   ");
  add("two", type, {2}, "ab   cd   ");
  H5Tclose(type);
  const Hdf5File file = reopen();
  EXPECT_EQ(file.read_text("terminated"), "ab");
  EXPECT_EQ(file.read_text("full"), "abcde");
  EXPECT_EQ(file.read_text("padded"), "ab");
  EXPECT_EQ(file.read_text("spaces"), "ab");
  EXPECT_THAT(message_of([&] { file.read_text("two"); }),
              HasSubstr("two: expected a single value, found the shape [2]"));
}

TEST_F(Hdf5ForeignFile, WhatNoTensorCanHoldIsRefused) {
  const hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(pair, "r", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(pair, "i", 4, H5T_NATIVE_FLOAT);
  add("pairs", pair, {2}, nullptr);
  H5Tclose(pair);
  add_in("null", H5T_NATIVE_FLOAT, H5Screate(H5S_NULL), nullptr);
  add("nine", H5T_NATIVE_FLOAT, std::vector<hsize_t>(9, 1), nullptr);
  H5Lcreate_soft("/nowhere", file_, "dangling", H5P_DEFAULT, H5P_DEFAULT);
  const Hdf5File file = reopen();
  EXPECT_EQ(file.type("pairs"), Hdf5Type::Other);
  EXPECT_THAT(message_of([&] { file.read_floats("pairs"); }),
              HasSubstr("pairs: expected numbers, found elements of another type"));
  EXPECT_THAT(message_of([&] { file.shape("null"); }), HasSubstr("it holds no value (null)"));
  EXPECT_THAT(message_of([&] { file.shape("nine"); }), HasSubstr("at most 8 dimensions, found 9"));
  EXPECT_FALSE(file.exists("dangling"));
  EXPECT_THAT(message_of([&] { file.read_floats("dangling"); }),
              HasSubstr("dangling: there is no object of that name"));
}

#ifndef __SANITIZE_ADDRESS__  // which takes such a request for a mistake, and aborts
TEST_F(Hdf5ForeignFile, WhatDoesNotFitInMemoryIsRefused) {
  properties_ = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[] = {64, 64};
  H5Pset_chunk(properties_, 2, chunk);
  add("floats", H5T_NATIVE_FLOAT, {hsize_t{1} << 40, 1024}, nullptr);
  add("bytes", H5T_NATIVE_UINT8, {hsize_t{1} << 40, 1 << 20}, nullptr);
  H5Pclose(properties_);
  const Hdf5File file = reopen();
  EXPECT_EQ(message_of([&] { file.read_floats("floats"); }),
            path_ + ": floats: its [1099511627776, 1024] elements do not fit in memory");
  EXPECT_THAT(message_of([&] { file.read_bytes("bytes"); }), HasSubstr("do not fit in memory"));
}
#endif

}  // namespace
}  // namespace lacuna::hdf5_foreign_test
