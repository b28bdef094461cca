// Files of masks (masks/step-N.h5) and the masks in checkpoints, behind a good seal: the input is
// what follows the header.
#include "lacuna/framework/io/storage/checkpoint_seal.h"
#include "lacuna/framework/records/mask_record.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

namespace {

void draw(const StepMasks& masks) {
  for (const MaskRecord& mask : masks.masks) {
    if (mask.shape.numel() > 0) picture_of(mask, 50);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("masks");
  ::unlink(file.path().c_str());
  file.write(std::string(static_cast<size_t>(kSealBytes), '\0').append(fuzz::text_of(data, size)));
  seal_file(file.path(), 1);
  fuzz::answer([&] { draw(read_masks(file.path())); });
  fuzz::answer([&] { draw(read_masks_of_checkpoint(file.path())); });
  return 0;
}
