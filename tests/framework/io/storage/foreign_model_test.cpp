#include "lacuna/framework/io/storage/foreign_model.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/train/weights/stored_values.hpp"
#include "temporary_folder.h"

namespace lacuna::foreign_model_test {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Case {
  std::string name, bytes, words, way;
};

const std::string kTfLite = "\x1c\0\0\0TFL3\0\0\0\0"s;
const std::string kOnnx = "\x08\x08\x12\x07pytorch"s;
const std::string kKeras =
    "PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0d\0\0\0metadata.json{}"s;
const std::string kSafetensors = "\x02\0\0\0\0\0\0\0{}"s;

std::vector<Case> cases() {
  const std::string import = "lacuna import FILE --config CONFIG --out RUN";
  return {{"a.keras", kKeras, "is a Keras model", "numpy.savez('"},
          {"a.zip", kKeras, "is a Keras model", "keras.models.load_model('"},
          {"b.KERAS", "PK\x03\x04 x", "is a Keras model", "numpy.savez('"},
          {"a.onnx", kOnnx, "is an ONNX model", "onnx.load('"},
          {"empty_header.onnx", "x", "is an ONNX model", "onnx.load('"},
          {"a.dat", kOnnx, "is an ONNX model", "onnx.load('"},
          {"a.gguf", "GGUF\3\0\0\0"s, "is a GGUF model", ".safetensors"},
          {"a.bin", "GGUF\3\0\0\0"s, "is a GGUF model", "gguf.GGUFReader('"},
          {"b.bin", "lmgg\1\0\0\0"s, "is a GGML model", import},
          {"a.tflite", kTfLite, "is a TensorFlow Lite model", import},
          {"a.model", kTfLite, "is a TensorFlow Lite model", import},
          {"a.pb", "x", "is a TensorFlow model", import},
          {"a.mlmodel", "x", "is a Core ML model", import},
          {"a.pdparams", "x", "is a PaddlePaddle model", import},
          {"a.msgpack", "x", "is a Flax model", import},
          {"a.xml", "<?xml", "is an OpenVINO model", import},
          {"w.st", kSafetensors, "is a .safetensors file by its first bytes", "mv '"},
          {"w.npz", kSafetensors, "is a .safetensors file by its first bytes", "mv '"},
          {"w.array", "\x93NUMPY\1\0"s, "is a .npy file by its first bytes", "mv '"},
          {"w.zip", "PK\x03\x04 fc.weight.npy"s, "is a .npz file by its first bytes", "mv '"}};
}

// As `lacuna import` and `--init-from` open what they are given.
void open_weights(const std::string& path) {
  if (is_foreign_file(path)) {
    open_stored_arrays(path);
  } else {
    CheckpointFile file(path);
  }
}

std::string refusal(const std::string& path) {
  try {
    open_weights(path);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ForeignModel, IsNamedWithTheWayOutWhateverItIsCalled) {
  const TemporaryFolder folder;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const std::string path = folder.write(one.name, one.bytes);
    EXPECT_THAT(refusal(path), AllOf(HasSubstr("'" + path + "' " + one.words), HasSubstr(one.way),
                                     Not(HasSubstr("damaged"))));
  }
}

TEST(ForeignModel, KerasHdf5IsToldFromOtherHdf5) {
  const TemporaryFolder folder;
  for (const bool is_keras : {true, false}) {
    const std::string path = folder / (is_keras ? "keras.h5" : "other.h5");
    Hdf5File file = Hdf5File::create(path);
    file.write(is_keras ? "model_weights/dense/kernel" : "a", Tensor::zeros({2, 3}));
    file.close();
    const std::string message = refusal(path);
    EXPECT_EQ(message.find("is a Keras model") != std::string::npos, is_keras) << message;
    EXPECT_THAT(message, HasSubstr(".npz"));
  }
}

TEST(ForeignModel, OfAFolderIsTheSavedModelInIt) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "tf");
  EXPECT_EQ(foreign_model(folder / "tf"), "");
  // Its first bytes are those of an ONNX file.
  folder.write("tf/saved_model.pb", std::string("\x08\x01\x12\x04tags", 8));
  EXPECT_THAT(foreign_model(folder / "tf"), HasSubstr("is a TensorFlow model"));
  EXPECT_THAT(foreign_model(folder / "tf/saved_model.pb"), HasSubstr("is a TensorFlow model"));
}

TEST(ForeignModel, IsNothingForOtherFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(foreign_model(folder / "absent.onnx"), "");
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, std::string>>{{"notes.txt", "hello"},
                                                        {"ok.safetensors", kSafetensors},
                                                        {"cut.h5", "lacuna checkpoint\nformat 2"},
                                                        {"empty", ""}}) {
    EXPECT_EQ(foreign_model(folder.write(name, bytes)), "") << name;
  }
}

}  // namespace
}  // namespace lacuna::foreign_model_test
