// Checkpoints, behind a good seal, so that the content is reached: the input is what follows the
// header. What is read is written, and read again.
#include "lacuna/framework/io/checkpoint.h"

#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/fuzz/reading_server.h"

using namespace lacuna;

namespace {

void read(std::string_view bytes, bool is_trusted) {
  static const fuzz::ScratchFile file("checkpoint"), again("checkpoint_again");
  ::unlink(file.path().c_str());
  file.write(std::string(static_cast<size_t>(kSealBytes), '\0').append(bytes));
  seal_file(file.path(), kCheckpointFormat);
  if (is_trusted) trust_hdf5(file.path());
  fuzz::answer([&] {
    const CheckpointFile opened(file.path());
    fuzz::answer([&] { opened.read_config(); });
    const Checkpoint checkpoint = opened.read();
    write_checkpoint(again.path(), checkpoint);
    fuzz::require(read_checkpoint(again.path()).step == checkpoint.step, "the step has changed");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::ReadingServer server(read);
  server.take(fuzz::text_of(data, size));
  return 0;
}
