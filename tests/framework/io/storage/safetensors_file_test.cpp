#include "lacuna/framework/io/storage/safetensors_file.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "framework/io/file_size_limit.h"
#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/core/error.h"
#include "paths.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::safetensors_file_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Safetensors : public testing::Test {
 protected:
  SafetensorsFile open(const std::string& header, std::string_view data = "") {
    return SafetensorsFile(folder_.write("a.safetensors", safetensors_bytes(header, data)));
  }
  void refused(const std::string& bytes, const std::string& words) {
    const std::string path = folder_.write("bad.safetensors", bytes);
    SCOPED_TRACE(words);
    expect_throws<DataError>([&] { SafetensorsFile file(path); },
                             "'" + path + "' is not a valid safetensors file: " + words);
  }
  void refused_header(const std::string& header, const std::string& words, size_t data = 0) {
    refused(safetensors_bytes(header, std::string(data, '\0')), words);
  }
  // Of one tensor x.
  void refused_tensor(const std::string& dtype, const std::string& shape,
                      const std::string& offsets, size_t data, const std::string& words) {
    refused_header("{" + safetensors_entry("x", dtype, shape, offsets) + "}", words, data);
  }

  TemporaryFolder folder_;
};

TEST_F(Safetensors, ReadsWhatIsWritten) {
  const std::string path = folder_ / "a.safetensors";
  write_safetensors(path,
                    {{"b.weight", Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})},
                     {"a \"quoted\"\n", Tensor::scalar(7)},
                     {"none", Tensor::zeros({2, 0})}},
                    {{"format", "pt"}, {"made by", "ä"}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.path(), path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a \"quoted\"\n");
  EXPECT_EQ(file.tensors()[0].shape, Shape());
  EXPECT_EQ(file.tensors()[0].begin % 8, 0);
  EXPECT_THAT(file.read(file.tensors()[0]).to_vector(), ElementsAre(7));
  EXPECT_EQ(file.tensor("b.weight").shape, (Shape{2, 3}));
  EXPECT_EQ(file.tensor("b.weight").dtype, "F32");
  EXPECT_THAT(file.read(file.tensor("b.weight")).to_vector(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(file.tensor("none").shape, (Shape{2, 0}));
  EXPECT_THAT(file.read(file.tensor("none")).to_vector(), IsEmpty());
  EXPECT_EQ(file.metadata().at("made by"), "ä");
  expect_throws<DataError>([&] { file.tensor("b.wait"); },
                           "has no tensor 'b.wait'; did you mean 'b.weight'?");
}

TEST_F(Safetensors, ReadsAFileOfTheFormatsOwnLibrary) {
  const SafetensorsFile file(std::string(kSourceFolder) +
                             "/tests/golden/models/resnet8.safetensors");
  EXPECT_EQ(file.tensors().size(), 44u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.tensor("conv1.weight").shape, (Shape{16, 3, 3, 3}));
  EXPECT_EQ(file.tensor("bn1.num_batches_tracked").dtype, "I64");
  EXPECT_EQ(file.read(file.tensor("bn1.running_var")).shape(), (Shape{16}));
}

TEST_F(Safetensors, WritesTheSameBytesAsTheFormatsOwnLibrary) {
  const std::string path = folder_ / "a.safetensors";
  write_safetensors(path, {{"b", Tensor::full({1}, 1.0f)}, {"a", Tensor::full({1}, 2.0f)}});
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                       safetensors_entry("a", "F32", "[1]", "[0,4]") + "," +
                       safetensors_entry("b", "F32", "[1]", "[4,8]") + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(read_text(path), safetensors_bytes(header, raw_bytes<float>({2.0f, 1.0f})));
}

TEST_F(Safetensors, WritesTensorsThatLieInSlabs) {
  const std::string path = folder_ / "a.safetensors";
  const Tensor values = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4});
  write_safetensors(path, {{"x", values.to(Order::BatchSlabs)}});
  const SafetensorsFile file(path);
  EXPECT_THAT(file.read(file.tensor("x")).to_vector(), ElementsAre(1, 2, 3, 4));
}

TEST_F(Safetensors, ConvertsOtherFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string header = "{" + safetensors_entry("double", "F64", "[3]", "[0,24]") + "," +
                             safetensors_entry("half", "F16", "[8]", "[24,40]") + "," +
                             safetensors_entry("brain", "BF16", "[3]", "[40,46]") + "}";
  const SafetensorsFile file = open(
      header,
      raw_bytes<double>({0.1, std::numeric_limits<double>::infinity(), -2.0}) +
          raw_bytes<uint16_t>({0x3c00, 0xc000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0x8000, 0x7e00}) +
          raw_bytes<uint16_t>({0x3f80, 0xc040, 0x7f80}));
  EXPECT_THAT(file.read(file.tensor("double")).to_vector(), ElementsAre(0.1f, kInfinity, -2.0f));
  const std::vector<float> half = file.read(file.tensor("half")).to_vector();
  EXPECT_THAT(std::vector<float>(half.begin(), half.begin() + 7),
              ElementsAre(1.0f, -2.0f, std::ldexp(1.0f, -24), -std::ldexp(1023.0f, -24), 65504.0f,
                          kInfinity, -0.0f));
  EXPECT_TRUE(std::signbit(half[6]));
  EXPECT_TRUE(std::isnan(half[7]));
  EXPECT_THAT(file.read(file.tensor("brain")).to_vector(), ElementsAre(1.0f, -3.0f, kInfinity));
}

TEST_F(Safetensors, DoublesBeyondFloat32AreToldByNameAndValue) {
  const SafetensorsFile file =
      open("{" + safetensors_entry("fc.weight", "F64", "[2]", "[0,16]") + "}",
           raw_bytes<double>({3.4e38, 1e300}));
  expect_throws<DataError>([&] { file.read(file.tensor("fc.weight")); },
                           "the tensor 'fc.weight' in '" + file.path() +
                               "' has the value 1e+300 (its element 1, in row-major order)");
}

// More than a block of what is converted at a time.
TEST_F(Safetensors, ConvertsLongArrays) {
  std::string data;
  for (int i = 0; i < 70000; ++i) data += raw_bytes<double>({i / 2.0});
  const SafetensorsFile file =
      open("{" + safetensors_entry("x", "F64", "[70000]", "[0,560000]") + "}", data);
  const std::vector<float> values = file.read(file.tensor("x")).to_vector();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i) / 2.0f);
}

TEST_F(Safetensors, OtherTypesAreListedAndNotRead) {
  const SafetensorsFile file =
      open("{" + safetensors_entry("count", "I64", "[]", "[0,8]") + "}", std::string(8, '\1'));
  EXPECT_FALSE(file.tensor("count").is_float());
  expect_throws<DataError>(
      [&] { file.read(file.tensor("count")); },
      "the tensor 'count' in '" + file.path() + "' is I64; expected F32, F64, F16 or BF16");
}

TEST_F(Safetensors, TakesWhatTheFormatTakes) {
  EXPECT_THAT(open("{}").tensors(), IsEmpty());
  EXPECT_THAT(open("{}     ").tensors(), IsEmpty());
  EXPECT_THAT(open(" \t\r\n{}").tensors(), IsEmpty());
  EXPECT_THAT(open("{\"__metadata__\":{}}").tensors(), IsEmpty());
  EXPECT_EQ(open("{" + safetensors_entry("", "F32", "[2,0]", "[0,0]") + "}").tensors().size(), 1u);
  EXPECT_EQ(open("{" + safetensors_entry("x", "F4", "[2]", "[0,1]") + "}", "1").tensors().size(),
            1u);
  // Not in the header's order, with an empty one between, where two begin at the same byte.
  const SafetensorsFile file = open("{" + safetensors_entry("c", "U8", "[1]", "[2,3]") + "," +
                                        safetensors_entry("b", "U8", "[0]", "[2,2]") + "," +
                                        safetensors_entry("a", "U8", "[2]", "[0,2]") + "}",
                                    "123");
  EXPECT_EQ(file.tensors()[1].name, "b");
  const SafetensorsFile values =
      open("{" + safetensors_entry("x", "F32", "[1,1,1,1,1,1,1,2]", "[0,8]") + "}",
           raw_bytes<float>({std::nanf(""), 1.0f}));
  EXPECT_TRUE(std::isnan(values.read(values.tensor("x")).to_vector()[0]));
}

TEST_F(Safetensors, RefusesWhatIsNoFile) {
  expect_throws<DataError>([&] { SafetensorsFile file(folder_ / "none"); },
                           "cannot read '" + (folder_ / "none") + "': No such file or directory");
  expect_throws<DataError>([&] { SafetensorsFile file(folder_.path()); },
                           "cannot read '" + folder_.path() + "': Is a directory");
}

TEST_F(Safetensors, RefusesLengthsThatCannotBe) {
  refused("", "it has 0 bytes, fewer than 8");
  refused("1234567", "it has 7 bytes, fewer than 8");
  refused(raw_bytes<uint64_t>({100'000'001}),
          "its header would have 100000001 bytes; the limit is 100000000");
  refused(raw_bytes<uint64_t>({~uint64_t{0}}), "its header would have 18446744073709551615 bytes");
  refused(raw_bytes<uint64_t>({3}) + "{}",
          "it is cut off: expected a header of 3 bytes, found 10 bytes in all");
}

TEST_F(Safetensors, RefusesHeadersThatAreNoJson) {
  refused_header("", "its header is not JSON: it does not begin with '{'");
  refused_header("  ", "its header is not JSON: it does not begin with '{'");
  refused_header("[]", "its header is not JSON: it does not begin with '{'");
  refused_header("\xef\xbb\xbf{}", "its header is not JSON: it does not begin with '{'");
  refused_header(std::string("{}\0", 3), "its header is not JSON: there is a zero byte in it");
  refused_header("{", "its header is not JSON (at byte 2 of it): parse error at line 1");
  refused_header("{}{}", "its header is not JSON (at byte 3 of it): parse error");
  refused_header("{\"a\":1e999}", "its header is not JSON (at byte ");
  const std::string path =
      folder_.write("utf.safetensors", safetensors_bytes("{\"__metadata__\":{\"a\":\"\xff\"}}"));
  expect_throws<DataError>([&] { SafetensorsFile file(path); }, "ill-formed UTF-8 byte");
}

TEST_F(Safetensors, RefusesJsonThatIsNotTheFormats) {
  refused_header("{\"a\":1}", "'a' in its header: expected an object, found the number 1");
  refused_header("{\"a\":null}", "'a' in its header: expected an object, found null");
  refused_header("{\"a\":[]}", "'a' in its header: expected an object, found a list");
  refused_header("{\"a\":\"b\"}", "'a' in its header: expected an object, found text");
  refused_header("{\"__metadata__\":{\"a\":1}}",
                 "'a' in __metadata__: expected text, found the number 1");
  refused_header("{\"__metadata__\":{\"a\":{}}}",
                 "'a' in __metadata__: expected text, found an object");
  refused_header("{\"a\":{}}", "the tensor 'a' has no 'dtype'");
  refused_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}",
                 "the tensor 'a' has no 'data_offsets'");
  refused_header("{\"a\":{\"strides\":[]}}",
                 "the tensor 'a' has a key 'strides'; expected only dtype, shape and data_offsets");
  refused_header("{\"a\":{\"dtype\":32}}",
                 "the dtype of the tensor 'a': expected text, found the number 32");
  refused_header("{\"a\":{\"dtype\":[\"F32\"]}}",
                 "the dtype of the tensor 'a': expected text, found a list");
  refused_header("{\"a\":{\"shape\":{}}}",
                 "the shape of the tensor 'a': expected a list of sizes, whole numbers from 0 on, "
                 "found an object");
  for (const auto& [size, found] :
       {std::pair("-1", "a negative number"), std::pair("1.5", "the number 1.5"),
        std::pair("18446744073709551616", "the number 184467440737095"),
        std::pair("true", "true or false"), std::pair("[1]", "a list")}) {
    refused_header(std::string("{\"a\":{\"shape\":[") + size + "]}}",
                   std::string("the shape of the tensor 'a': expected a list of sizes, whole "
                               "numbers from 0 on, found ") +
                       found);
  }
  for (const auto& [offsets, found] :
       {std::pair("[]", "an empty list"), std::pair("[0]", "one number"),
        std::pair("[0,4,8]", "the number 8"), std::pair("\"0\"", "text")}) {
    refused_header(std::string("{\"a\":{\"data_offsets\":") + offsets + "}}",
                   std::string("the data_offsets of the tensor 'a': expected two whole numbers, "
                               "begin and end, found ") +
                       found);
  }
}

TEST_F(Safetensors, RefusesWhatIsThereTwice) {
  const std::string x = safetensors_entry("x", "U8", "[0]", "[0,0]");
  refused_header("{" + x + "," + x + "}", "'x' appears twice");
  refused_header("{\"__metadata__\":{},\"__metadata__\":{}}", "'__metadata__' appears twice");
  refused_header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}",
                 "'a' appears twice in __metadata__");
  refused_header("{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "the tensor 'x' has 'dtype' twice");
}

TEST_F(Safetensors, RefusesNestingBeyondTheFormats) {
  const size_t depth = 1'000'000;
  refused_header("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}",
                 "'a' in its header: expected an object, found a list");
  std::string objects;
  for (size_t i = 0; i < depth; ++i) objects += "{\"shape\":";
  refused_header("{\"a\":" + objects, "the shape of the tensor 'a': expected a list of sizes");
}

TEST_F(Safetensors, RefusesSizesThatDoNotFit) {
  refused_tensor("F32", "[2]", "[0,4]", 4, "the tensor 'x' (F32 [2]) has 4 bytes; expected 8");
  refused_tensor("F32", "[2,0]", "[0,4]", 4, "the tensor 'x' (F32 [2, 0]) has 4 bytes; expected 0");
  refused_tensor("I8", "[]", "[0,0]", 0, "the tensor 'x' (I8 []) has 0 bytes; expected 1");
  refused_tensor("F4", "[3]", "[0,2]", 2,
                 "the tensor 'x' (F4 [3]) has 12 bits, which is not a whole number of bytes");
  refused_tensor("F33", "[1]", "[0,4]", 4,
                 "the tensor 'x' has the unknown dtype 'F33'; did you mean 'F32'?");
  refused_tensor("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4,
                 "the tensor 'x' has more than 8 dimensions, the limit");
}

TEST_F(Safetensors, RefusesProductsThatOverflow) {
  refused_tensor("F32", "[2,18446744073709551614]", "[0,16]", 16,
                 "the tensor 'x' of shape [2, 18446744073709551614] is too large");
  refused_tensor("F32", "[4611686018427387904]", "[0,0]", 0,
                 "the tensor 'x' of shape [4611686018427387904] is too large");
  refused_tensor("F32", "[0,18446744073709551615]", "[0,0]", 0,
                 "the tensor 'x' of shape [0, 18446744073709551615] has a size beyond 63 bits");
  refused_tensor("F32", "[4611686018427387904,2,0]", "[0,0]", 0,
                 "the tensor 'x': shape [4611686018427387904, 2, 0] has too many elements");
}

TEST_F(Safetensors, RefusesHolesOverlapsAndWhatIsLeftOver) {
  const auto two = [](const char* first, const char* second) {
    return "{" + safetensors_entry("a", "U8", "[2]", first) + "," +
           safetensors_entry("b", "U8", "[2]", second) + "}";
  };
  refused_header(two("[0,2]", "[3,5]"),
                 "the tensor 'b' lies at bytes 3 to 5 of the data; expected it to begin at 2, "
                 "where the one before it ends",
                 5);
  refused_header(two("[0,2]", "[1,3]"), "the tensor 'b' lies at bytes 1 to 3 of the data", 3);
  refused_header(two("[0,2]", "[0,2]"), "the tensor 'b' lies at bytes 0 to 2 of the data", 2);
  refused_header(two("[1,3]", "[3,5]"), "the tensor 'a' lies at bytes 1 to 3 of the data", 5);
  refused_tensor("U8", "[2]", "[0,18446744073709551614]", 2,
                 "the tensor 'x' (U8 [2]) has 18446744073709551614 bytes; expected 2");
  refused_header("{" + safetensors_entry("x", "U8", "[0]", "[2,0]") + "}",
                 "the tensor 'x' lies at bytes 2 to 0 of the data", 2);
  refused_header(two("[0,2]", "[2,4]"),
                 "the last tensor ends at byte 4 of the data, which has 5 bytes", 5);
  refused_header("{}", "the last tensor ends at byte 0 of the data, which has 1 bytes", 1);
  refused_header(two("[0,2]", "[2,4]"),
                 "it is cut off: the tensor 'b' ends at byte 4 of the data, which has 3 bytes", 3);
}

TEST_F(Safetensors, SaysWhenAFileHasBecomeShorter) {
  const std::string header = "{" + safetensors_entry("x", "F32", "[2]", "[0,8]") + "," +
                             safetensors_entry("y", "F16", "[2]", "[8,12]") + "}";
  const SafetensorsFile file = open(header, std::string(12, '\0'));
  std::filesystem::resize_file(file.path(), 8 + header.size() + 4);
  for (const char* name : {"x", "y"}) {
    expect_throws<DataError>([&] { file.read(file.tensor(name)); },
                             std::string("cannot read the tensor '") + name + "' in '" +
                                 file.path() + "': it became shorter while it was read");
  }
}

TEST_F(Safetensors, SaysWhatItCannotWrite) {
  const std::string path = folder_ / "a.safetensors";
  const Tensor one = Tensor::zeros({1});
  const auto refuse = [&](const std::vector<std::pair<std::string, Tensor>>& tensors,
                          const std::string& words) {
    expect_throws<StateError>([&] { write_safetensors(path, tensors); },
                              "cannot write '" + path + "': " + words);
  };
  refuse({{"x", one}, {"x", one}}, "'x' appears twice");
  refuse({{"__metadata__", one}}, "no tensor can be named '__metadata__'");
  refuse({{"x", Tensor()}}, "the tensor 'x' is undefined");
  refuse({{"\xff", one}}, "the name '\xff' is not UTF-8");
  refuse({{std::string(100'000'000, 'x'), one}}, "its header would have 1000000");
  expect_throws<StateError>(
      [&] {
        write_safetensors(folder_ / "no/a", {{"x", one}});
      },
      "cannot write '" + (folder_ / "no/a") + "': No such file or directory");
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(Safetensors, AFullDiskLeavesTheOldFile) {
  const std::string path = folder_.write("a.safetensors", "old");
  const FileSizeLimit limit(100);
  expect_throws<StateError>(
      [&] {
        write_safetensors(path, {{"x", Tensor::zeros({1000})}});
      },
      "cannot write '" + path + "': File too large");
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder_.names().size(), 1u);
}

}  // namespace
}  // namespace lacuna::safetensors_file_test
