// Files that name others, or themselves: a checkpoint reads nothing from elsewhere, and no shape of
// groups keeps a reader busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::hdf5_elsewhere_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Hdf5Elsewhere : public testing::Test {
 protected:
  Hdf5Elsewhere() : path_(folder_ / "a.h5"), file_(create(path_)) {}

  static hid_t create(const std::string& path) {
    return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  }
  static void add(hid_t file, const char* name, hid_t properties = H5P_DEFAULT) {
    const hsize_t size = 2;
    const float values[] = {1.0f, 2.0f};
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t dataset =
        H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Sclose(space);
  }
  static void add_group(hid_t file, const std::string& name) {
    H5Gclose(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  void close() { H5Fclose(file_); }

  template <class E = DataError>
  static std::string message(const std::function<void()>& use) {
    try {
      use();
    } catch (const E& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
  std::string path_;
  hid_t file_;
};

TEST_F(Hdf5Elsewhere, ListsAllDatasets) {
  add_group(file_, "/b");
  add_group(file_, "/b/c");
  add(file_, "/a");
  add(file_, "/b/c/x");
  add(file_, "/b/y");
  close();
  EXPECT_THAT(Hdf5File::open(path_).datasets(), ElementsAre("a", "b/c/x", "b/y"));
}

TEST_F(Hdf5Elsewhere, RefusesAGroupInsideOfItself) {
  add_group(file_, "/model");
  add_group(file_, "/model/fc1");
  H5Lcreate_hard(file_, "/model", file_, "/model/fc1/again", H5P_DEFAULT, H5P_DEFAULT);
  close();
  EXPECT_THAT(message([&] { Hdf5File::open(path_).datasets(); }), HasSubstr("has several names"));
}

TEST_F(Hdf5Elsewhere, RefusesGroupsThatNestTooDeep) {
  hid_t group = H5Gopen2(file_, "/", H5P_DEFAULT);
  for (int i = 0; i < 2000; ++i) {
    const hid_t inner = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    group = inner;
  }
  H5Gclose(group);
  close();
  EXPECT_THAT(message([&] { Hdf5File::open(path_).datasets(); }),
              HasSubstr("groups nest deeper than 32"));
}

TEST_F(Hdf5Elsewhere, ReadsAnotherFileOnlyWhereLinksAreFollowed) {
  const hid_t other = create(folder_ / "other.h5");
  add(other, "/x");
  add_group(other, "/g");
  add(other, "/g/x");
  H5Fclose(other);
  H5Lcreate_external("other.h5", "/x", file_, "/linked", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/g", file_, "/group", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/group/x", file_, "/soft", H5P_DEFAULT, H5P_DEFAULT);
  close();
  const Hdf5File shut = Hdf5File::open(path_);
  for (const char* name : {"linked", "group/x", "soft"}) {
    EXPECT_THAT(message([&] { shut.read_floats(name); }),
                HasSubstr(std::string(name) + ": it is reached by an external link, to another "
                                              "file, and only this file may be read"));
  }
  EXPECT_THAT(message([&] { shut.datasets(); }),
              HasSubstr("it is a link to an object outside this file"));
  // What may be asked for is said where it can be: of data, and not of a checkpoint.
  EXPECT_THAT(message([&] { shut.read_floats("linked"); }), Not(HasSubstr("follow_links")));
  EXPECT_THAT(message([&] { Hdf5File::open(path_, Hdf5Links::NotAskedFor).read_floats("linked"); }),
              HasSubstr("or, for data that you trust, set data.follow_links: true"));
  const Hdf5File open = Hdf5File::open(path_, Hdf5Links::Followed);
  EXPECT_THAT(open.read_floats("linked").to_vector(), ElementsAre(1.0f, 2.0f));
  EXPECT_THAT(open.read_floats("soft").to_vector(), ElementsAre(1.0f, 2.0f));
}

// A pipe would never come to its end, and a folder has none.
TEST_F(Hdf5Elsewhere, FollowsLinksToFilesAlone) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.h5").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder.h5");
  for (const char* name : {"pipe", "folder", "missing"}) {
    H5Lcreate_external((std::string(name) + ".h5").c_str(), "/x", file_, name, H5P_DEFAULT,
                       H5P_DEFAULT);
  }
  close();
  const Hdf5File open = Hdf5File::open(path_, Hdf5Links::Followed);
  for (const char* name : {"pipe", "folder", "missing"}) {
    EXPECT_THAT(message([&] { open.read_floats(name); }), HasSubstr(name));
  }
}

TEST_F(Hdf5Elsewhere, ReadsExternalStorageOnlyWhereLinksAreFollowed) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(properties, (folder_ / "bytes").c_str(), 0, 8);
  add(file_, "/x", properties);
  H5Pclose(properties);
  close();
  EXPECT_THAT(
      message([&] { Hdf5File::open(path_).read_floats("x"); }),
      HasSubstr(
          "x: its values are in another file (external storage), and only this file may be read"));
  EXPECT_THAT(Hdf5File::open(path_, Hdf5Links::Followed).read_floats("x").to_vector(),
              ElementsAre(1.0f, 2.0f));
}

TEST_F(Hdf5Elsewhere, ReadsVirtualDatasetsOnlyWhereLinksAreFollowed) {
  const hid_t other = create(folder_ / "other.h5");
  add(other, "/x");
  H5Fclose(other);
  const hsize_t size = 2;
  const hid_t space = H5Screate_simple(1, &size, nullptr),
              properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(properties, space, (folder_ / "other.h5").c_str(), "/x", space);
  H5Dclose(H5Dcreate2(file_, "/x", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Sclose(space);
  H5Pclose(properties);
  close();
  EXPECT_THAT(message([&] { Hdf5File::open(path_).read_floats("x"); }),
              HasSubstr("x: it is a virtual dataset, whose values are in other files"));
  EXPECT_THAT(Hdf5File::open(path_, Hdf5Links::Followed).read_floats("x").to_vector(),
              ElementsAre(1.0f, 2.0f));
}

// What was done to a checkpoint before it was sealed again.
TEST_F(Hdf5Elsewhere, RefusesSealedCheckpointsOfThatKind) {
  close();
  const auto changed = [&](const std::function<void(hid_t)>& change) {
    const std::string path = folder_ / "checkpoint.h5";
    Checkpoint checkpoint;
    checkpoint.config_yaml = "model: []\n";
    checkpoint.state.set("model/fc.weight", Tensor::zeros({2, 2}));
    write_checkpoint(path, checkpoint);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    change(file);
    H5Fclose(file);
    seal_file(path, kCheckpointFormat);
    return message<CheckpointError>([&] { read_checkpoint(path); });
  };
  EXPECT_EQ(changed([](hid_t) {}), "no error");
  EXPECT_THAT(changed([](hid_t file) {
                H5Lcreate_hard(file, "/model", file, "/model/again", H5P_DEFAULT, H5P_DEFAULT);
              }),
              HasSubstr("has several names in the file"));
  EXPECT_THAT(changed([&](hid_t file) {
                H5Lcreate_external(path_.c_str(), "/x", file, "/model/x", H5P_DEFAULT, H5P_DEFAULT);
              }),
              HasSubstr("model/x: it is a link to an object outside this file"));
  EXPECT_THAT(changed([&](hid_t file) {
                const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
                H5Pset_external(properties, (folder_ / "bytes").c_str(), 0, 8);
                add(file, "/model/x", properties);
                H5Pclose(properties);
              }),
              HasSubstr("model/x: its values are in another file"));
  EXPECT_THAT(
      changed([](hid_t file) {
        const hid_t attribute = H5Aopen(file, "format_version", H5P_DEFAULT);
        const int64_t version = 99;
        H5Awrite(attribute, H5T_NATIVE_INT64, &version);
        H5Aclose(attribute);
      }),
      HasSubstr(
          "its attribute 'format_version' is 99, but this version of lacuna reads from 1 to 2"));
}

}  // namespace
}  // namespace lacuna::hdf5_elsewhere_test
