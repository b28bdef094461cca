// The instruction sets that this build has kernels for, whichever runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// Best first: all of this kind of processor, or one (LACUNA_KERNELS=machine).
std::vector<std::string> compiled_instruction_sets();

/// The best of these of Highway's targets that the processor supports, if this build has no kernels
/// for it; empty otherwise. uncompiled_instruction_set() asks for this processor and build.
std::string uncompiled_instruction_set(int64_t supported, int64_t compiled);

}  // namespace lacuna
