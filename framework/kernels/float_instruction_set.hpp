// The instruction set by which float32 is computed.
#pragma once

#include <string>

namespace lacuna {

/// active_instruction_set(), but "avx2" for "avx-vnni", of which only products of bytes make use.
/// Processes in which these are equal compute equal bits.
std::string float_instruction_set();

}  // namespace lacuna
