// HDF5 data, as data.type: hdf5 reads it: labels, and numbers. What crashes the HDF5 library must
// have crashed it in the child process.
#include "lacuna/framework/core/config.h"
#include "lacuna/framework/data/hdf5_dataset.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("hdf5_data");
  ::unlink(file.path().c_str());
  file.write(fuzz::text_of(data, size));
  for (const char* task : {"classification", "regression"}) {
    fuzz::answer([&] {
      load_hdf5(Config::map({{"path", file.path()},
                             {"task", task},
                             {"test_inputs", "test_inputs"},
                             {"test_targets", "test_targets"}}),
                1);
    });
  }
  return 0;
}
