// NumPy's files of arrays: .npz, an archive of .npy members, and a single .npy.
#pragma once

#include <memory>
#include <string>

#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {

/// The arrays are named as the members are, without ".npy". In addition to the checks of the
/// archive, each member's header must account for every one of its bytes, so that nothing is
/// unpacked whose size its shape does not tell. Arrays in Fortran order and big-endian ones are
/// turned round on reading. *Errors:* DataError with the path.
std::unique_ptr<ArrayFile> open_npz(const std::string& path);

/// The one array is named as the file is, without folder and ".npy". *Errors:* DataError with the
/// path.
std::unique_ptr<ArrayFile> open_npy(const std::string& path);

}  // namespace lacuna
