#include "lacuna/framework/io/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.hpp"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {
namespace {

// HDF5 would ignore an empty part, and read a dot as the group itself.
void require_path(const std::string& name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == ".") {
      throw StateError("the name '" + name + "' in the state has an empty part or a lone dot");
    }
    begin = end + 1;
  }
  if (!is_utf8(name) || name.find('\0') != std::string::npos) {
    throw StateError("the name '" + printable(name) + "' in the state is not text in UTF-8");
  }
  if (std::ranges::count(name, '/') > kMostHdf5Groups) {
    throw StateError(fmt::format("the name '{}' in the state has more than {} parts",
                                 printable(name), kMostHdf5Groups));
  }
}

void write_value(Hdf5File& file, const std::string& name, const StateDict::Value& value) {
  require_path(name);
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Tensor>) {
          file.write(name, held);
        } else if constexpr (std::is_same_v<Held, ByteArray> || std::is_same_v<Held, SignedBytes>) {
          file.write(name, held.shape, held.values, Compression::Deflate);
        } else if constexpr (std::is_same_v<Held, std::vector<int64_t>> ||
                             std::is_same_v<Held, std::vector<uint32_t>>) {
          file.write(name, Shape{static_cast<int64_t>(held.size())}, held);
        } else if constexpr (std::is_same_v<Held, int64_t>) {
          file.write(name, Shape(), std::span<const int64_t>(&held, 1));
        } else if constexpr (std::is_same_v<Held, double>) {
          file.write_number(name, held);
        } else {
          file.write_text(name, held);
        }
      },
      value);
}

int64_t count_attribute(const Hdf5File& file, const char* name) {
  const int64_t value = file.attribute_integer("/", name);
  if (value >= 0 && value <= StateDict::kMostCounted) return value;
  throw DataError(fmt::format("its attribute '{}' is {}, expected a count", name, value));
}

// The seal in front of the file names its format too; the two are written together.
int64_t known_format(const Hdf5File& file) {
  const int64_t format = file.attribute_integer("/", "format_version");
  if (format >= 1 && format <= kCheckpointFormat) return format;
  throw DataError(
      fmt::format("its attribute 'format_version' is {}, but this version of lacuna reads from 1 "
                  "to {}: use a newer one",
                  format, kCheckpointFormat));
}

double seconds_attribute(const Hdf5File& file, const char* name) {
  const double value = file.attribute_number("/", name);
  if (value >= 0.0 && value <= StateDict::kLargestNumber) return value;
  throw DataError("its attribute '" + std::string(name) + "' is " + Config(value).text() +
                  ", expected a number of seconds");
}

// The type in the file and the rank name the alternative that was written.
StateDict::Value read_value(const Hdf5File& file, const std::string& path) {
  const Hdf5Type type = file.type(path);
  if (type == Hdf5Type::Text) return file.read_text(path);
  if (file.is_uint8(path)) return ByteArray{file.shape(path), file.read_bytes(path)};
  if (file.is_int8(path)) return SignedBytes{file.shape(path), file.read_signed_bytes(path)};
  if (file.is_uint32(path)) return file.read_indices(path);
  if (type == Hdf5Type::Integer) {
    std::vector<int64_t> values = file.read_integers(path);
    if (file.shape(path).rank() == 0) return values.front();
    return values;
  }
  if (file.element_bytes(path) == sizeof(double)) return file.read_number(path);
  return file.read_floats(path);
}

void write_content(const std::string& path, const Checkpoint& checkpoint) {
  Hdf5File file = Hdf5File::create(path, {.user_block_bytes = kSealBytes});
  file.write_attribute("/", "format_version", kCheckpointFormat);
  file.write_attribute("/", "lacuna_version", kVersion);
  if (checkpoint.arithmetic_revision) {
    file.write_attribute("/", "arithmetic_revision", *checkpoint.arithmetic_revision);
  }
  file.write_attribute("/", "step", checkpoint.step);
  file.write_attribute("/", "config", checkpoint.config_yaml);
  file.write_attribute("/", "train_seconds", checkpoint.train_seconds);
  file.write_attribute("/", "metrics_bytes", checkpoint.metrics_bytes);
  const auto& values = checkpoint.state.values();
  const auto middle = std::next(values.begin(), static_cast<std::ptrdiff_t>(values.size() / 2));
  for (auto it = values.begin(); it != middle; ++it) write_value(file, it->first, it->second);
  fault_point("checkpoint.half_written");
  for (auto it = middle; it != values.end(); ++it) write_value(file, it->first, it->second);
  file.close();
}

Checkpoint read_content(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  Checkpoint checkpoint;
  checkpoint.step = count_attribute(file, "step");
  checkpoint.format_version = known_format(file);
  checkpoint.config_yaml = file.attribute_text("/", "config");
  checkpoint.train_seconds = seconds_attribute(file, "train_seconds");
  checkpoint.metrics_bytes = count_attribute(file, "metrics_bytes");
  checkpoint.lacuna_version = file.attribute_text("/", "lacuna_version");
  checkpoint.arithmetic_revision.reset();
  if (file.has_attribute("/", "arithmetic_revision")) {
    checkpoint.arithmetic_revision = count_attribute(file, "arithmetic_revision");
  }
  for (const std::string& name : file.datasets()) {
    checkpoint.state.set(name, read_value(file, name));
  }
  return checkpoint;
}

// The seal proves that the bytes are those that were written, but not who wrote them.
void probe(const std::string& path) {
  probe_hdf5({.path = path, .purpose = "checkpoint"}, [&] { read_content(path); });
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  fault_point("checkpoint.before_write");
  try {
    FileReplacement replacement(path);
    write_content(replacement.temporary_path(), checkpoint);
    seal_file(replacement.temporary_path(), kCheckpointFormat);
    replacement.flush();
    fault_point("checkpoint.before_rename");
    replacement.commit();
    trust_hdf5(path);
  } catch (const StateError& error) {
    throw StateError("the checkpoint '" + path + "' was not written: " + error.what());
  }
  fault_point("checkpoint.after_rename");
}

void naming_file(const std::string& path, const std::function<void()>& use) {
  try {
    use();
  } catch (const CheckpointError& error) {
    throw CheckpointError(path + ": " + error.what());
  }
}

CheckpointFile::CheckpointFile(std::string path) : path_(std::move(path)) {
  verify_seal(path_, kCheckpointFormat);
}

Checkpoint CheckpointFile::read() const {
  try {
    probe(path_);
    return read_content(path_);
  } catch (const DataError& error) {
    throw CheckpointError("the checkpoint '" + path_ + "' cannot be used: " + error.what());
  }
}

std::string CheckpointFile::read_config() const {
  try {
    probe(path_);
    return Hdf5File::open(path_).attribute_text("/", "config");
  } catch (const DataError& error) {
    throw CheckpointError("the checkpoint '" + path_ + "' cannot be used: " + error.what());
  }
}

Checkpoint read_checkpoint(const std::string& path) { return CheckpointFile(path).read(); }

}  // namespace lacuna
