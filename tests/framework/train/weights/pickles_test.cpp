// Pickles, which are never read: told by their names, or by their first bytes.
#include <gmock/gmock.h>

#include <string>

#include "framework/io/storage/npz_bytes.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/layers/linear.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::pickles_test {
namespace {

// fc.weight [4, 8], fc.bias [4].
class Pickles : public testing::Test {
 protected:
  Pickles() { model_.add<Linear>("fc", {.in_features = 8, .out_features = 4}); }

  TemporaryFolder folder_;
  Sequential model_;
};

TEST_F(Pickles, AreNeverReadButExplained) {
  for (const char* name : {"net.pt", "net.pth", "net.th", "net.bin", "net.pkl"}) {
    const std::string path = folder_.write(name, "\x80\x02.");
    expect_throws<CheckpointError>(
        [&] { load_weights(path, model_); },
        "torch.load('" + path + "', map_location='cpu', weights_only=True)");
  }
}

// As those of PyTorch Lightning, and files that are named as what they are not.
TEST_F(Pickles, AreToldByTheirFirstBytes) {
  const std::string pickle = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9 and so on";
  const std::string archive = zip_bytes({{.name = "net/data.pkl", .bytes = pickle}});
  const std::string framed("\x80\x04\x95\x3c\0\0\0\0\0\0\0\x8c\x05posix", 18);  // Python's own
  for (const std::string name : {"net.ckpt", "net", "net.safetensors", "net.npz", "net.npy"}) {
    for (const std::string& bytes : {pickle, framed}) {
      const std::string path = folder_.write(name, bytes);
      expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                     "is a pickle by its first bytes: reading it would run");
      expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                     ".items()}, '" + (folder_ / "net.safetensors") + "')");
    }
  }
  for (const std::string name : {"net.ckpt", "net.zip", "net.safetensors"}) {
    const std::string path = folder_.write(name, archive);
    expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                   "is a pickle by its first bytes");
  }
}

// The error of a file of arrays says how to convert it.
TEST_F(Pickles, InArraysAreExplained) {
  const std::string named = folder_.write(
      "net.npz", zip_bytes({{.name = "net/data.pkl", .bytes = "\x80\x02 and so on"}}));
  expect_throws<CheckpointError>([&] { load_weights(named, model_); },
                                 "which is never read. Convert it once");
  std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
  header.resize(117, ' ');
  const std::string objects =
      folder_.write("net.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n");
  expect_throws<CheckpointError>([&] { load_weights(objects, model_); },
                                 "Save plain arrays instead");
}

// Its header has 640 bytes, which is 0x80 and a 2 at the beginning.
TEST_F(Pickles, ASizeThatBeginsAsOneIsNone) {
  std::string header = R"({"fc.bias": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})";
  header.resize(640, ' ');
  const std::string path = folder_.write(
      "t.safetensors", std::string("\x80\x02\0\0\0\0\0\0", 8) + header + std::string(16, '\0'));
  expect_throws<CheckpointError>([&] { load_weights(path, model_); },
                                 "'fc.weight' [4, 8] is in the model only");
  folder_.write("t.safetensors", std::string("\x80\x02\0\0\0\0\0\0", 8) + header);
  expect_throws<CheckpointError>([&] { load_weights(path, model_); }, "it is cut off");
}

// There is nothing to convert.
TEST_F(Pickles, OneThatIsNotThereIsToldToBeMissing) {
  for (const char* name : {"gone.pt", "gone.bin"}) {
    const std::string path = folder_ / name;
    try {
      load_weights(path, model_);
      FAIL() << name;
    } catch (const CheckpointError& error) {
      EXPECT_EQ(error.what(), "cannot read '" + path + "': No such file or directory");
    }
  }
}

}  // namespace
}  // namespace lacuna::pickles_test
