// Copies between a tensor's slab and the planes that a gather works on, if they
// differ.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/kernels/conv/conv_plan.hpp"

namespace lacuna {

/// Copies every phase of every channel of a slab into planes; outside of the image they are zero,
/// or the line `border`. `slab` and `planes` are complete: they begin with their leads.
void split_phases(const Planes& image, int64_t channels, Extent stride,
                  std::span<const PixelPhase> phases, const Planes& into, const float* slab,
                  float* planes, const float* border = nullptr);
/// The inverse: pixels of missing phases become zero; the slab's borders stay.
void join_phases(const Planes& image, int64_t channels, Extent stride,
                 std::span<const PixelPhase> phases, const Planes& from, const float* planes,
                 float* slab);

}  // namespace lacuna
