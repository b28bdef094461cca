// The instruction set that the kernels run on: chosen at run time, seen and capped by the user.
#pragma once

#include <string>

namespace lacuna {

/// "avx512", "avx2", "sse4", "baseline", "neon", or "reference" (plain C++, for checking the rest).
/// The best that the processor and this build have, unless the environment variable
/// LACUNA_INSTRUCTION_SET caps it to one of these names: then the best that is not above the cap,
/// so that the name of a set that the processor lacks stands for the next lower one that it has.
/// Read once, at the first use of a kernel; oneDNN is held to the same cap. *Errors:* ConfigError
/// when the variable holds another name. A build for one instruction set (LACUNA_KERNELS=machine)
/// has no other: ConfigError for a cap below it, Error when the processor lacks it.
const std::string& active_instruction_set();

/// The best instruction set that the processor has, if this build has no kernels for it
/// (LACUNA_KERNELS=machine, built on an older machine); empty otherwise.
std::string uncompiled_instruction_set();

/// Whether kernels must run their scalar reference.
bool use_reference_kernels();

}  // namespace lacuna
