// Models in several safetensors files: read as one, and refused where index and files do not agree.
#include "lacuna/framework/io/storage/safetensors_index.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::safetensors_index_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

class ShardedModel : public testing::Test {
 protected:
  ShardedModel() {
    write_safetensors(folder_ / "model-00001-of-00002.safetensors",
                      {{"fc1.weight", Tensor::from({1, 2}, std::vector<float>{1, 2})},
                       {"fc1.bias", Tensor::from({1}, std::vector<float>{3})}});
    write_safetensors(folder_ / "model-00002-of-00002.safetensors",
                      {{"fc2.weight", Tensor::from({2, 1}, std::vector<float>{4, 5})}});
  }

  std::string index(const std::string& json) const {
    return folder_.write("model.safetensors.index.json", json);
  }
  std::string good() const {
    return index(R"({"metadata": {"total_size": 20, "nested": {"weight_map": [1, {"a": null}]}},
                     "weight_map": {"fc1.weight": "model-00001-of-00002.safetensors",
                                    "fc1.bias": "model-00001-of-00002.safetensors",
                                    "fc2.weight": "model-00002-of-00002.safetensors"},
                     "format": ["pt"]})");
  }

  TemporaryFolder folder_;
};

TEST_F(ShardedModel, IsReadAsOneFile) {
  const auto file = open_array_file(good());
  std::map<std::string, std::vector<float>> values;
  for (size_t i = 0; i < file->arrays().size(); ++i) {
    values[file->arrays()[i].name] = file->read(i).to_vector();
  }
  EXPECT_THAT(values,
              ElementsAre(Pair("fc1.bias", ElementsAre(3)), Pair("fc1.weight", ElementsAre(1, 2)),
                          Pair("fc2.weight", ElementsAre(4, 5))));
}

TEST_F(ShardedModel, NeedsAllItsFiles) {
  const std::string path = good();
  std::filesystem::remove(folder_ / "model-00002-of-00002.safetensors");
  expect_throws<DataError>([&] { open_array_file(path); },
                           "cannot read '" + (folder_ / "model-00002-of-00002.safetensors") + "'");
}

TEST_F(ShardedModel, AgreesWithItsIndex) {
  const auto refused = [&](const std::string& map, const std::string& message) {
    expect_throws<DataError>([&] { open_array_file(index("{\"weight_map\": {" + map + "}}")); },
                             message);
  };
  const std::string first = R"("fc1.weight": "model-00001-of-00002.safetensors")",
                    bias = R"("fc1.bias": "model-00001-of-00002.safetensors")",
                    second = R"("fc2.weight": "model-00002-of-00002.safetensors")";
  refused(first + "," + second,
          "the tensor 'fc1.bias' is in 'model-00001-of-00002.safetensors', but the index lists it "
          "nowhere");
  refused(first + "," + bias + R"(, "fc2.weight": "model-00001-of-00002.safetensors")",
          "the tensor 'fc2.weight' is not in 'model-00001-of-00002.safetensors'");
  refused(first + "," + second + R"(, "fc1.bias": "model-00002-of-00002.safetensors")",
          "the tensor 'fc1.bias' is in 'model-00001-of-00002.safetensors', but the index lists it "
          "in 'model-00002-of-00002.safetensors'");
  write_safetensors(folder_ / "model-00002-of-00002.safetensors",
                    {{"fc1.bias", Tensor::from({1}, std::vector<float>{3})},
                     {"fc2.weight", Tensor::from({2, 1}, std::vector<float>{4, 5})}});
  refused(first + "," + bias + "," + second,
          "the tensor 'fc1.bias' is in 'model-00002-of-00002.safetensors', but the index lists it "
          "nowhere, or in two files; download or write it again, with all its files");
}

// What would lead out of the folder, or be no name of a file.
TEST(SafetensorsIndex, NamesFilesNextToIt) {
  for (const char* file : {"../model.safetensors", "/etc/model.safetensors", "a/model.safetensors",
                           "..", "..\\\\model.safetensors", ".safetensors", "", "model.bin",
                           "model\\u0000.safetensors", "\\u002e\\u002e\\u002fmodel.safetensors"}) {
    const std::string json = std::string(R"({"weight_map": {"w": ")") + file + "\"}}";
    expect_throws<DataError>([&] { parse_safetensors_index(json); },
                             "expected the name of a .safetensors file next to the index");
  }
  EXPECT_THAT(parse_safetensors_index(R"({"weight_map": {"w": "..a..safetensors"}})"),
              ElementsAre(Pair("w", "..a..safetensors")));
}

TEST(SafetensorsIndex, SaysWhatIsWrong) {
  const auto refused = [](const std::string& json, const std::string& message) {
    expect_throws<DataError>([&] { parse_safetensors_index(json); }, message);
  };
  refused("", "it is not JSON");
  refused("{\"weight_map\": {\"w\": \"a.saf", "it is not JSON (at byte ");
  refused(std::string("{}\0", 3), "there is a zero byte in it");
  refused("{\"weight_map\": {\"w\": \"\xFF.safetensors\"}}", "it is not JSON (at byte ");
  refused("[]", "expected an object, found a list");
  refused("3", "expected an object, found a number");
  refused("{}", "there is no 'weight_map' in it");
  refused(R"({"metadata": {"weight_map": {}}})", "there is no 'weight_map' in it");
  refused(R"({"weight_map": ["a.safetensors"]})", "'weight_map': expected an object, found a list");
  refused(R"({"weight_map": null})", "'weight_map': expected an object, found null");
  refused(R"({"weight_map": {"w": 1}})", "the tensor 'w': expected the name of its file");
  refused(R"({"weight_map": {"w": {"a": "b"}}})", "the tensor 'w': expected the name of its file");
  refused(R"({"weight_map": {}, "weight_map": {}})", "'weight_map' appears twice");
  refused(R"({"weight_map": {"w": "a.safetensors", "w": "b.safetensors"}})",
          "the tensor 'w' appears twice");
}

// Neither time nor memory is lost on depth.
TEST(SafetensorsIndex, PassesOverDeepNesting) {
  const std::string deep(200000, '['), closed(200000, ']');
  EXPECT_TRUE(
      parse_safetensors_index("{\"other\": " + deep + closed + ", \"weight_map\": {}}").empty());
}

}  // namespace
}  // namespace lacuna::safetensors_index_test
