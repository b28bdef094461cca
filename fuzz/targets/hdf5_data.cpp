// HDF5 data, as data.type: hdf5 reads it: labels, and numbers. What crashes the HDF5 library must
// have crashed it in the child process.
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/types/hdf5_dataset.h"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/fuzz/reading_server.h"

using namespace lacuna;

namespace {

void read(std::string_view bytes, bool is_trusted) {
  static const fuzz::ScratchFile file("hdf5_data");
  ::unlink(file.path().c_str());
  file.write(bytes);
  if (is_trusted) trust_hdf5(file.path());
  for (const char* task : {"classification", "regression"}) {
    fuzz::answer([&] {
      load_hdf5(Config::map({{"path", file.path()},
                             {"task", task},
                             {"test_inputs", "test_inputs"},
                             {"test_targets", "test_targets"}}),
                1);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::ReadingServer server(read);
  server.take(fuzz::text_of(data, size));
  return 0;
}
