// The version of lacuna, as programs and files state it.
#pragma once

namespace lacuna {

/// Equal to the version of the CMake project (a test holds this).
inline constexpr const char* kVersion = "0.2.0";

}  // namespace lacuna
