// Models on their way to ONNX that are damaged: weights in other tools' files, configurations in
// checkpoints. Each is refused by an error of lacuna's or becomes a whole file; what stood at the
// file's place before stays until then, and nothing is left beside it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "framework/interop/runs.h"
#include "framework/io/storage/damaged_files.h"
#include "framework/io/storage/npz_bytes.h"
#include "framework/io/storage/safetensors_bytes.h"
#include "framework/onnx/onnx_file.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/onnx/export_onnx.hpp"

namespace lacuna::damaged_models_test {
namespace {

struct Kind {
  const char* name;
  const char* yaml;
  Shape example;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

const Kind kKinds[] = {
    {"mlp",
     "layers:\n"
     "  - flatten\n"
     "  - {type: linear, name: fc1, out_features: 8}\n"
     "  - {type: batch_norm, name: bn}\n"
     "  - {type: gelu, approximate: tanh}\n"
     "  - {type: linear, name: fc2, out_features: 3, bias: false}\n",
     {2, 3}},
    {"convolutions",
     "layers:\n"
     "  - {type: conv2d, name: conv1, out_channels: 4, kernel: 3, padding: 1, stride: 2}\n"
     "  - {type: batch_norm, name: bn}\n"
     "  - relu\n"
     "  - {type: max_pool, kernel: 2}\n"
     "  - {type: conv2d, name: conv2, out_channels: 4, kernel: 1, groups: 2}\n"
     "  - global_average_pool\n"
     "  - {type: linear, name: fc, out_features: 3}\n",
     {2, 8, 8}},
    {"gpt2", "{type: gpt2, vocab_size: 11, n_positions: 6, n_embd: 8, n_layer: 1, n_head: 2}", {6}},
};

class DamagedModels : public testing::TestWithParam<Kind> {
 protected:
  DamagedModels() : model_(build_from(GetParam().yaml, GetParam().example)) {
    model_->initialize(3);
    for (const ParameterPtr& parameter : model_->parameters()) {
      values_.emplace_back(parameter->name(), parameter->to_dense());
    }
    for (const auto& [name, buffer] : model_->buffers())
      values_.emplace_back(name, buffer->clone());
    for (const auto& [name, tensor] : values_) {
      std::string shape = "(";
      for (const int64_t size : tensor.shape().sizes()) shape += std::to_string(size) + ",";
      members_.push_back({.name = name + ".npy",
                          .bytes = npy_bytes("<f4", shape + ")", raw_bytes(tensor.to_vector()))});
    }
  }

  // Runs `make`, which writes `out()`; counts what became of it.
  template <class Make>
  void attempt(const std::string& what, Make&& make) {
    write_text(out(), "as it was");
    const std::string before = listing(folder_.path());
    try {
      make();
      ++exported_;
      onnx::ModelProto model;
      EXPECT_TRUE(onnx_tests::parse_onnx(out(), model)) << what;
      EXPECT_EQ(model.graph().output_size(), 1) << what;
    } catch (const Error&) {  // anything else fails the test
      ++refused_;
      EXPECT_EQ(read_text(out()), "as it was") << what;
    }
    EXPECT_EQ(listing(folder_.path()), before) << what;
  }

  void export_weights(const std::string& file, const std::string& bytes) {
    const std::string path = folder_.write(file, bytes);
    attempt(file, [&] {
      const auto model = build_from(GetParam().yaml, GetParam().example);
      load_weights(path, *model);
      model->eval();
      export_onnx(*model, GetParam().example, {}, out());
    });
  }

  // An archive with an array that is damaged within, its checksum that of the damage.
  std::string with_bad_member(Damage& damage) {
    std::vector<ZipTestMember> members = members_;
    ZipTestMember& member = members[damage.below(members.size())];
    const size_t header = damage.below(2) == 0 ? 0 : member.bytes.find('\n') + 1;
    member.bytes =
        member.bytes.substr(0, header) +
        damage.of(member.bytes.substr(header), std::string_view("\x7f\x80<f48,)(\0", 10));
    if (header > 0) member.bytes.resize(members_[&member - members.data()].bytes.size(), '\x3f');
    return zip_bytes(members);
  }

  std::string out() const { return folder_ / "model.onnx"; }

  TemporaryFolder folder_;
  std::unique_ptr<Sequential> model_;
  std::vector<std::pair<std::string, Tensor>> values_;
  std::vector<ZipTestMember> members_;
  int exported_ = 0, refused_ = 0;
};

TEST_P(DamagedModels, OfSafetensorsAreWrittenWholeOrNotAtAll) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : values_) arrays.push_back({name, tensor});
  write_safetensors_arrays(folder_ / "w.safetensors", arrays);
  const std::string good = read_text(folder_ / "w.safetensors");
  Damage damage(std::string("safetensors ") + GetParam().name);
  for (int round = 0; round < 180; ++round) {
    std::string bad = good;
    if (round % 3 == 0) {
      bad = damage.of(good, "{}[]\":,0123456789FBI");
    } else {  // values alone
      for (size_t change = 0; change <= damage.below(3); ++change) {
        bad[bad.size() - 1 - damage.below(bad.size() / 2)] ^=
            static_cast<char>(1 << damage.below(8));
      }
    }
    export_weights("w.safetensors", bad);
  }
  EXPECT_GT(exported_, 40);
  EXPECT_GT(refused_, 40);
}

TEST_P(DamagedModels, OfNpzAreWrittenWholeOrNotAtAll) {
  const std::string good = zip_bytes(members_);
  Damage damage(std::string("npz ") + GetParam().name);
  for (int round = 0; round < 180; ++round) {
    export_weights("w.npz", round % 2 == 0
                                ? damage.of(good, std::string_view("PK\1\2\3\4\xff{}(),'<f4", 16))
                                : with_bad_member(damage));
  }
  EXPECT_GT(exported_, 20);
  EXPECT_GT(refused_, 40);
}

// Four digits in a row, or an exponent, may ask for a model that takes gigabytes.
bool is_large(const std::string& text) {
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    digits = is_digit ? digits + 1 : 0;
    const bool has_exponent = is_digit && i + 1 < text.size() && std::tolower(text[i + 1]) == 'e';
    if (digits > 3 || has_exponent) return true;
  }
  return false;
}

TEST_P(DamagedModels, OfConfigurationsAreWrittenWholeOrNotAtAll) {
  const Kind& kind = GetParam();
  write_run(folder_ / "run.h5", kind.yaml, kind.example, *model_);
  Checkpoint checkpoint = read_checkpoint(folder_ / "run.h5");
  const std::string good = checkpoint.config_yaml;
  const auto export_with = [&](const std::string& yaml) {
    checkpoint.config_yaml = yaml;
    write_checkpoint(folder_ / "run.h5", checkpoint);
    attempt(yaml,
            [&] { export_run(folder_ / "run.h5", out(), {.format = "onnx", .overwrite = true}); });
  };
  export_with(good);
  EXPECT_EQ(exported_, 1);
  Damage damage(std::string("configuration ") + kind.name);
  const std::string_view likely = " \n-:{}[],'\"#&*!0123456789xe~";
  for (int round = 0; round < 60;) {  // each reads a checkpoint, which takes milliseconds
    std::string bad = good;
    if (round % 2 == 0) {
      bad[damage.below(bad.size())] = likely[damage.below(likely.size())];
    } else {
      bad = damage.of(good, likely);
    }
    if (is_large(bad)) continue;
    ++round;
    export_with(bad);
  }
  EXPECT_GT(refused_, 30);
}

INSTANTIATE_TEST_SUITE_P(OnTheWayToOnnx, DamagedModels, testing::ValuesIn(kKinds),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace lacuna::damaged_models_test
