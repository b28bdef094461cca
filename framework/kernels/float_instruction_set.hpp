// The instruction set of the float32 kernels.
#pragma once

#include <string>

namespace lacuna {

/// As active_instruction_set(), but "avx2" for "avx-vnni", which only the int8 products use.
/// Processes in which it is the same compute the same bits.
std::string float_instruction_set();

}  // namespace lacuna
