// Files of masks (masks/step-N.h5) and the masks in checkpoints, behind a good seal: the input is
// what follows the header.
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/framework/records/mask_record.hpp"
#include "lacuna/fuzz/reading_server.h"

using namespace lacuna;

namespace {

void draw(const StepMasks& masks) {
  for (const MaskRecord& mask : masks.masks) {
    if (mask.shape.numel() > 0) picture_of(mask, 50);
  }
}

void read(std::string_view bytes, bool is_trusted) {
  static const fuzz::ScratchFile file("masks");
  ::unlink(file.path().c_str());
  file.write(std::string(static_cast<size_t>(kSealBytes), '\0').append(bytes));
  seal_file(file.path(), 1);
  if (is_trusted) trust_hdf5(file.path());
  fuzz::answer([&] { draw(read_masks(file.path())); });
  fuzz::answer([&] { draw(read_masks_of_checkpoint(file.path())); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::ReadingServer server(read);
  server.take(fuzz::text_of(data, size));
  return 0;
}
