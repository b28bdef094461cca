// NumPy's files: what is read, in which order and type, what is written, and what is refused.
#include <gmock/gmock.h>

#include <limits>
#include <sstream>
#include <tuple>

#include "framework/io/storage/npz_bytes.h"
#include "framework/io/storage/safetensors_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::npz_file_test {
namespace {

using testing::ElementsAre;

class NpzFile : public testing::Test {
 protected:
  std::unique_ptr<ArrayFile> open(const std::vector<ZipTestMember>& members) {
    return open_array_file(folder_.write("arrays.npz", zip_bytes(members)));
  }
  void refused(const std::vector<ZipTestMember>& members, const std::string& words) {
    expect_throws<DataError>([&] { open(members); }, words);
    expect_throws<DataError>([&] { open(members); }, folder_ / "arrays.npz");
  }
  std::unique_ptr<ArrayFile> npy(const std::string& bytes) {
    return open_array_file(folder_.write("one.weight.npy", bytes));
  }
  void npy_refused(const std::string& bytes, const std::string& words) {
    expect_throws<DataError>([&] { npy(bytes); }, words);
  }

  TemporaryFolder folder_;
  const std::string good_ = npy_bytes("<f4", "(2, 3)", raw_bytes<float>({1, 2, 3, 4, 5, 6}));
};

TEST_F(NpzFile, ReadsStoredAndDeflatedMembers) {
  const auto file =
      open({{.name = "a.npy", .bytes = good_},
            {.name = "h/0/b.npy", .bytes = good_, .deflate = true},
            {.name = "c.npy", .bytes = good_, .zip64_header = true},
            {.name = "d.npy", .bytes = good_, .deflate = true, .sizes_behind = true}});
  ASSERT_EQ(file->arrays().size(), 4u);
  EXPECT_EQ(file->arrays()[1].name, "h/0/b");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(file->arrays()[i].shape, (Shape{2, 3}));
    EXPECT_THAT(file->read(i).to_vector(), ElementsAre(1, 2, 3, 4, 5, 6)) << i;
  }
}

TEST_F(NpzFile, AnArchiveOfNothingIsGood) { EXPECT_TRUE(open({})->arrays().empty()); }

TEST_F(NpzFile, FortranOrderIsTurnedRound) {
  // Columns first: [[1, 3, 5], [2, 4, 6]].
  const std::string matrix =
      npy_bytes("<f4", "(2, 3)", raw_bytes<float>({1, 2, 3, 4, 5, 6}), "True");
  EXPECT_THAT(npy(matrix)->read(0).to_vector(), ElementsAre(1, 3, 5, 2, 4, 6));
  const std::string cube = npy_bytes("<f4", "(2, 1, 2)", raw_bytes<float>({1, 2, 3, 4}), "True");
  EXPECT_THAT(npy(cube)->read(0).to_vector(), ElementsAre(1, 3, 2, 4));
  const std::string list = npy_bytes("<f4", "(2,)", raw_bytes<float>({1, 2}), "True");
  EXPECT_THAT(npy(list)->read(0).to_vector(), ElementsAre(1, 2));
}

TEST_F(NpzFile, TypesAreConvertedByRule) {
  EXPECT_THAT(npy(npy_bytes("<f8", "(2,)", raw_bytes<double>({0.5, 1e-300})))->read(0).to_vector(),
              ElementsAre(0.5f, 0.0f));
  const auto beyond = npy(npy_bytes("<f8", "(3,)", raw_bytes<double>({0.5, -1e40, 1e300})));
  expect_throws<DataError>([&] { beyond->read(0); },
                           "the tensor 'one.weight' in '" + beyond->path() +
                               "' has the value -1e+40 (its element 1, in row-major order), which "
                               "is beyond the range of float32");
  const auto infinite =
      npy(npy_bytes("<f8", "(1,)", raw_bytes<double>({std::numeric_limits<double>::infinity()})));
  EXPECT_EQ(infinite->read(0).item(), std::numeric_limits<float>::infinity());
  EXPECT_THAT(
      npy(npy_bytes("<f2", "(2,)", raw_bytes<uint16_t>({0x3c00, 0xc000})))->read(0).to_vector(),
      ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(
      npy(npy_bytes(">f4", "(2,)", std::string("\x3f\x80\0\0\x40\0\0\0", 8)))->read(0).to_vector(),
      ElementsAre(1.0f, 2.0f));
  const auto integers = npy(npy_bytes("<i8", "(1,)", raw_bytes<int64_t>({7})));
  EXPECT_EQ(integers->arrays()[0].name, "one.weight");
  expect_throws<DataError>([&] { integers->read(0); }, "is I64; expected F32, F64, F16 or BF16");
}

// A file with an array that no weight can be is a good file all the same.
TEST_F(NpzFile, OtherTypesOfNumPysAreNamedAndNotRead) {
  for (const auto& [descr, bytes, name] : std::vector<std::tuple<std::string, size_t, std::string>>{
           {"<c8", 8, "complex64 ('<c8')"},
           {"<c16", 16, "complex128 ('<c16')"},
           {"<f16", 16, "float128 ('<f16')"},
           {"<U3", 12, "text ('<U3')"},
           {"|S5", 5, "text of bytes ('|S5')"},
           {"|V2", 2, "raw bytes, as NumPy saves bfloat16 ('|V2')"},
           {"<M8[ns]", 8, "datetime64 ('<M8[ns]')"}}) {
    const auto file =
        open({{.name = "a.npy", .bytes = good_},
              {.name = "b.npy", .bytes = npy_bytes(descr, "(2,)", std::string(2 * bytes, '\1'))}});
    ASSERT_EQ(file->arrays().size(), 2u) << descr;
    EXPECT_EQ(file->arrays()[1].type_name, name);
    EXPECT_EQ(file->arrays()[1].shape, Shape{2});
    EXPECT_THAT(file->read(0).to_vector(), ElementsAre(1, 2, 3, 4, 5, 6));
    expect_throws<DataError>(
        [&] { file->read(1); },
        "the tensor 'b' in '" + file->path() + "' is " + name + "; expected F32, F64, F16 or BF16");
    expect_throws<DataError>([&] { file->read_mask(1); }, "expected a type of zeros and ones");
    expect_throws<DataError>([&] { file->read_integers(1); }, "expected integers");
  }
  refused({{.name = "a.npy", .bytes = npy_bytes("|O", "(1,)", "x")}},
          "arrays.npz' cannot be used: the array 'a.npy': its elements are Python objects");
}

TEST_F(NpzFile, MasksAreOfAnyTypeAndOfZerosAndOnesAlone) {
  for (const auto& [descr, data] :
       std::vector<std::pair<std::string, std::string>>{{"|b1", std::string("\1\0\1", 3)},
                                                        {"<i8", raw_bytes<int64_t>({1, 0, 1})},
                                                        {"<f4", raw_bytes<float>({1, -0.0f, 1})},
                                                        {"<f8", raw_bytes<double>({1, 0, 1})},
                                                        {">u2", std::string("\0\1\0\0\0\1", 6)}}) {
    EXPECT_THAT(npy(npy_bytes(descr, "(3,)", data))->read_mask(0).values, ElementsAre(1, 0, 1))
        << descr;
  }
  const auto bad = npy(npy_bytes("|u1", "(3,)", std::string("\1\2\0", 3)));
  expect_throws<DataError>([&] { bad->read_mask(0); }, "a value other than 0 and 1 (its element 1");
}

TEST_F(NpzFile, HeadersAreReadStrictly) {
  const std::string data = raw_bytes<float>({1});
  const auto with = [&](const std::string& text) { return npy_file(text, data); };
  EXPECT_NO_THROW(npy(with("{\"shape\": (1,), 'fortran_order': False, 'descr': '<f4'}")));
  EXPECT_NO_THROW(npy(npy_file(npy_text("<f4", "(1,)"), data, 2)));
  EXPECT_NO_THROW(npy(npy_bytes("<f4", "()", data)));
  npy_refused(with("{'descr': '<f4', 'shape': (1,)}"), "its header has no 'fortran_order'");
  npy_refused(with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"),
              "'descr' twice");
  npy_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}"),
              "a key 'more'");
  npy_refused(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
              "records of several fields");
  npy_refused(with(npy_text("<f4", "(1)")), "a comma after the only size");
  npy_refused(with(npy_text("<f4", "(-1,)")), "a whole number from 0 on");
  npy_refused(with(npy_text("<f4", "(1 1,)")), "a comma between sizes");
  npy_refused(with(npy_text("<f4", "(1,)", "0")), "True or False");
  npy_refused(with(npy_text("<f4", "(1,)") + " + evil()"), "nothing after the dictionary");
  npy_refused(with("__import__('os')"), "expected '{' at character 0");
  npy_refused(with(npy_text("<f4", "(4611686018427387904, 4)")), "too many elements");
  npy_refused(with(npy_text("<f4", "(2305843009213693952,)")),
              "its shape [2305843009213693952] is too large");
  npy_refused(with(npy_text("<f4", "(1,1,1,1,1,1,1,1,1)")), "more than 8 sizes");
  npy_refused(with(npy_text("<c7", "(1,)")), "its type '<c7' is unknown");
  npy_refused(with(npy_text("<U99999999", "(1,)")), "is unknown");
  npy_refused(with(npy_text("<U16777216", "(1152921504606846975,)")),
              "its shape [1152921504606846975] is too large");
  npy_refused(with(npy_text("<c8", "(1,)")), "takes 8 bytes, and it has 4");
  npy_refused(with(npy_text("=f4", "(1,)")), "its type '=f4' is unknown");
  npy_refused(with(npy_text("|O", "(1,)")), "Python objects (a pickle), which is never loaded");
  npy_refused(npy_file(npy_text("<f4", "(1,)"), data, 4), "version 4.0");
  npy_refused(with(npy_text("<f4", "(2,)")), "takes 8 bytes, and it has 4");
  npy_refused("\x93NUMP", "fewer than a header");
  npy_refused("no NumPy file", "does not begin with");
  npy_refused(good_.substr(0, 40), "its header is cut off");
}

TEST_F(NpzFile, ArchivesThatLieAreRefused) {
  refused({{.name = "a.npy", .bytes = good_}, {.name = "a.npy", .bytes = good_}},
          "'a.npy' appears twice in it");
  refused({{.name = "a.npy", .bytes = good_, .local_name = "b.npy"}}, "differ in its name");
  refused({{.name = "a.npy", .bytes = good_, .more_bytes = 4}}, "is cut off");
  refused({{.name = "a.npy", .bytes = good_, .deflate = true, .more_bytes = 4}},
          "takes 24 bytes, and it has 28");
  refused({{.name = "a.npy", .bytes = good_, .deflate = true, .more_in_directory = 4}},
          "differ in its size");
  refused({{.name = "a.npy", .bytes = good_, .flags = 1}}, "is encrypted");
  refused({{.name = "a.npy", .bytes = good_, .method = 12}}, "compressed by method 12");
  refused({{.name = "a.npy", .bytes = good_, .method = 8}}, "is damaged");
  refused({{.name = "a.npy", .bytes = good_}, {.name = "b.npy", .bytes = good_, .offset = 0}},
          "differ in its name");
  refused({{.name = "readme.txt", .bytes = good_}},
          "'readme.txt' in it is not an array (NAME.npy); download or write it again");
  refused({{.name = "archive/data.pkl", .bytes = good_}},
          "arrays.npz' cannot be used: 'archive/data.pkl' in it is not an array: this is a PyTorch "
          "file");
  refused({{.name = "a.npy", .bytes = ""}}, "fewer than a header");
}

TEST_F(NpzFile, MembersThatOverlapAreRefused) {
  // The second member lies within the first, whose header it repeats.
  const std::string inner = zip_bytes({{.name = "b.npy", .bytes = good_}});
  const size_t local = 30 + 5 + good_.size();
  const std::string outer =
      npy_bytes("|u1", "(" + std::to_string(local) + ",)", inner.substr(0, local));
  const std::string file = zip_bytes({{.name = "a.npy", .bytes = outer}});
  const size_t at = file.find(inner.substr(0, local));
  ASSERT_NE(at, std::string::npos);
  const std::string twice =
      zip_bytes({{.name = "a.npy", .bytes = outer},
                 {.name = "b.npy", .bytes = good_, .offset = static_cast<int64_t>(at)}});
  expect_throws<DataError>([&] { open_array_file(folder_.write("x.npz", twice)); }, "overlap");
}

TEST_F(NpzFile, BombsAreRefusedBeforeTheyAreUnpacked) {
  ZipTestMember bomb{.name = "a.npy", .bytes = good_, .deflate = true, .more_bytes = 3'000'000'000};
  refused({bomb}, "more than deflate can");
  // One that is packed well, and says so: nothing is unpacked until it is asked for.
  const std::string zeros = npy_bytes("<f4", "(1000000,)", std::string(4'000'000, '\0'));
  const auto file = open({{.name = "a.npy", .bytes = zeros, .deflate = true}});
  EXPECT_EQ(file->arrays()[0].shape, Shape{1000000});
  EXPECT_LT(std::filesystem::file_size(folder_ / "arrays.npz"), 10'000u);
  // Its header says less than there is.
  const std::string short_shape = npy_bytes("<f4", "(1,)", std::string(4'000'000, '\0'));
  refused({{.name = "a.npy", .bytes = short_shape, .deflate = true}}, "takes 4 bytes");
}

TEST_F(NpzFile, ChecksumsAreCompared) {
  for (const bool deflate : {false, true}) {
    const auto file =
        open({{.name = "a.npy", .bytes = good_, .deflate = deflate, .wrong_crc = 0x10}});
    expect_throws<DataError>([&] { file->read(0); }, "its checksum is");
  }
}

TEST_F(NpzFile, WritesWhatItReads) {
  const std::string path = folder_ / "written.npz";
  const Tensor values = Tensor::from({2, 2}, std::vector<float>{1, -0.0f, 3e-40f, 4});
  write_npz(path, {{"fc.weight", values},
                   {"fc.weight_mask", ByteArray{.shape = {2, 2}, .values = {1, 0, 0, 1}}},
                   {"fc.weight.indices", std::vector<int32_t>{0, 1}},
                   {"scalar", Tensor::scalar(5)},
                   {"empty", Tensor::zeros({0, 3})},
                   {"fc.weight.shape", std::vector<int64_t>{2, 2}}});
  const auto file = open_array_file(path);
  ASSERT_EQ(file->arrays().size(), 6u);
  EXPECT_EQ(std::memcmp(file->read(0).data(), values.data(), 16), 0);
  EXPECT_THAT(file->read_mask(1).values, ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(file->arrays()[2].type, ElementType::I32);
  EXPECT_EQ(file->read(3).item(), 5.0f);
  EXPECT_EQ(file->read(4).shape(), (Shape{0, 3}));
  EXPECT_EQ(file->arrays()[5].type_name, "I64");
  EXPECT_EQ(listing(folder_.path()), "written.npz");
  // Headers are multiples of 64 bytes: NUMPY at 6 bytes behind "fc.weight.npy".
  const std::string bytes = read_text(path);
  const size_t header = bytes.find("\x93NUMPY");
  const auto length = static_cast<unsigned char>(bytes[header + 8]) +
                      256 * static_cast<unsigned char>(bytes[header + 9]);
  EXPECT_EQ((length + 10) % 64, 0);
}

TEST_F(NpzFile, RefusesToWriteNonsense) {
  const std::string path = folder_ / "x.npz";
  expect_throws<StateError>(
      [&] {
        write_npz(path, {{"a", Tensor::scalar(1)}, {"a", Tensor::scalar(1)}});
      },
      "'a' appears twice");
  expect_throws<StateError>([&] { write_npz(path, {{"a", Tensor()}}); }, "'a' is undefined");
  expect_throws<StateError>(
      [&] {
        write_npz(folder_ / "no/x.npz", {{"a", Tensor::scalar(1)}});
      },
      "no/x.npz");
  EXPECT_EQ(listing(folder_.path()), "");
}

// Archives beyond 4 GiB are tested by calling less than that large.
TEST(ZipWriter, LargeArchivesAreReadAgain) {
  for (const uint64_t zip64_from : {uint64_t{1}, uint64_t{60}, uint64_t{100}, uint64_t{170}}) {
    std::stringstream stream;
    ZipWriter writer(stream, zip64_from);
    const std::string first(50, 'a'), second(70, 'b');
    for (const std::string* text : {&first, &second}) {
      const std::span<const std::byte> part = std::as_bytes(std::span(*text));
      writer.add(text == &first ? "first" : "second", {&part, 1});
    }
    writer.finish();
    const std::string bytes = stream.str();
    const auto members = read_zip_directory(stream, bytes.size());
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[1].name, "second");
    std::vector<std::byte> unpacked(70);
    read_zip_member(stream, members[1], unpacked);
    EXPECT_EQ(unpacked.back(), std::byte{'b'}) << zip64_from;
  }
}

}  // namespace
}  // namespace lacuna::npz_file_test
