#include "lacuna/framework/data/formats/cifar_records.hpp"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/byte_reader.hpp"

namespace lacuna {
namespace {

[[noreturn]] void fail_cifar(const ByteReader& reader, const std::string& what) {
  throw DataError(reader.path().string() + ": " + what);
}

}  // namespace

int64_t append_cifar_records(const std::filesystem::path& path, std::span<const CifarLabel> layout,
                             size_t label, CifarRecords& records) {
  ByteReader reader(path);
  std::vector<uint8_t> record(layout.size() + static_cast<size_t>(kCifarPixels));
  for (int64_t index = 0;; ++index) {
    const size_t count = reader.read(record);
    if (count == 0 && index > 0) return index;
    if (count < record.size()) {
      fail_cifar(reader,
                 fmt::format("truncated, or another kind of file: expected a whole number of "
                             "records of {} bytes ({} of labels, {} of pixels), found {} records "
                             "and {} bytes",
                             record.size(), layout.size(), kCifarPixels, index, count));
    }
    for (size_t i = 0; i < layout.size(); ++i) {
      if (record[i] >= layout[i].classes) {
        fail_cifar(reader, fmt::format("the {} {} of record {} is outside of [0, {})",
                                       layout[i].name, record[i], index, layout[i].classes));
      }
    }
    records.labels.push_back(record[label]);
    records.pixels.insert(records.pixels.end(),
                          record.begin() + static_cast<std::ptrdiff_t>(layout.size()),
                          record.end());
  }
}

}  // namespace lacuna
