// The seal of a checkpoint: a header of text in front of the HDF5 content (its user block), with
// the length and the checksum of the whole file.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna {

/// Size of the header: the smallest user block that HDF5 knows.
inline constexpr int64_t kSealBytes = 512;

/// Writes the header of a file whose first kSealBytes are free and whose rest is final.
/// *Errors:* StateError. *Cost:* reads the file once, in blocks.
void seal_file(const std::string& path, int64_t format);

/// Compares length and checksum. *Errors:* CheckpointError naming what is wrong: the file cannot be
/// read, has no seal, is newer than `newest_format`, cut off, or damaged.
void verify_seal(const std::string& path, int64_t newest_format);

}  // namespace lacuna
