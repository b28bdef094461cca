#include "lacuna/framework/io/hdf5_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {
TEST(Hdf5File, smoke) {
  const Hdf5File file = Hdf5File::open(LACUNA_SOURCE_DIR "/tests/golden/ops.h5");
  for (const auto& group : file.children("/")) {
    for (const auto& name : file.children(group)) {
      const std::string path = group + "/" + name;
      if (file.is_group(path)) continue;
      std::printf("%s %s %s\n", path.c_str(), file.shape(path).to_string().c_str(),
                  to_string(file.type(path)));
      if (file.type(path) == Hdf5Type::Float) file.read_floats(path);
      if (file.type(path) == Hdf5Type::Integer) file.read_integers(path);
    }
    std::printf(
        "%s %s\n", group.c_str(),
        file.has_attribute(group, "config") ? file.attribute_text(group, "config").c_str() : "-");
  }
}
}  // namespace
}  // namespace lacuna
