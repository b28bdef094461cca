// CIFAR's binary files, of both kinds. Short inputs are filled up to a record.
#include "lacuna/framework/data/types/cifar.h"
#include "lacuna/framework/data/formats/cifar_records.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("cifar");
  std::string bytes(fuzz::text_of(data, size));
  // The last byte gives the distance from a whole record.
  if (!bytes.empty()) bytes.resize(static_cast<size_t>(kCifarPixels) + 1 + (data[size - 1] & 3));
  file.write(bytes);
  for (const CifarKind kind : {CifarKind::Cifar10, CifarKind::Cifar100}) {
    fuzz::answer([&] {
      const Examples examples = read_cifar_images(file.path(), kind);
      fuzz::require(examples.size() > 0, "there are no examples");
    });
  }
  constexpr CifarLabel kLayout[] = {{"coarse label", 20}, {"fine label", 100}};
  for (size_t label = 0; label < 2; ++label) {
    fuzz::answer([&] {
      CifarRecords records;
      append_cifar_records(file.path(), kLayout, label, records);
      for (const uint8_t found : records.labels) {
        fuzz::require(found < kLayout[label].classes, "a label is no class");
      }
    });
  }
  return 0;
}
