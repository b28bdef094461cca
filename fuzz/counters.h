// The fuzzer's counters: how often each edge was taken.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna::fuzz {

/// Those of the whole program; empty where it is not built for the fuzzer.
std::span<uint8_t> counters();

}  // namespace lacuna::fuzz
