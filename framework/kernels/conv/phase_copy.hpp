// Copies between a tensor's slab and the planes that a gather works on, where they are not the
// same.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/kernels/conv/conv_plan.hpp"

namespace lacuna {

/// Every phase of every channel of a slab into planes, which outside of the image are zero, or the
/// line `border`. `slab` and `planes` are whole: they begin with their leads.
void split_phases(const Planes& image, int64_t channels, Extent stride,
                  std::span<const PixelPhase> phases, const Planes& into, const float* slab,
                  float* planes, const float* border = nullptr);
/// Back: pixels of phases that are not there become zero; the slab's borders stay.
void join_phases(const Planes& image, int64_t channels, Extent stride,
                 std::span<const PixelPhase> phases, const Planes& from, const float* planes,
                 float* slab);

}  // namespace lacuna
