// Memory of freed Buffers that is kept for the next ones (see buffer.cpp); for tests.
#pragma once

#include <cstdint>

namespace lacuna {

/// Bytes of blocks that wait for the next Buffer of their size: at most 64 MiB, or what the program
/// has given back since it used most and half of that in addition.
int64_t kept_block_bytes();

}  // namespace lacuna
