#include "lacuna/framework/program/settings/data_paths.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"

namespace lacuna::data_paths_test {
namespace {

std::string orientation_of(const std::string& yaml) {
  register_builtins();
  Config config = parse_yaml(yaml, "c.yaml");
  write_new_run_keys(config);
  return config.is_map() && config.get("data").is_map()
             ? config.get("data").get("orientation").text()
             : "no data";
}

TEST(NewRunKeys, SayTheOrientationOfImagesInFolders) {
  EXPECT_EQ(orientation_of("data: {type: image_folder, dir: x}"), "exif");
  EXPECT_EQ(orientation_of("data: {type: image_folder, orientation: stored}"), "stored");
  EXPECT_EQ(orientation_of("data: {type: mnist}"), "nothing");
  EXPECT_EQ(orientation_of("data: 3"), "no data");
  EXPECT_EQ(orientation_of("model: 3"), "no data");
  EXPECT_EQ(orientation_of("3"), "no data");
}

}  // namespace
}  // namespace lacuna::data_paths_test
