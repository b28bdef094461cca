// Arithmetic on arrays of floats, element by element.
#pragma once

#include <span>

namespace lacuna {

// All arrays of a call have the same length (*Errors:* ShapeError); the output may be one of the
// inputs. *Cost:* one pass over memory, on several threads when it is long.

/// y = a + b, a − b, a · b.
void add(std::span<const float> a, std::span<const float> b, std::span<float> y);
void subtract(std::span<const float> a, std::span<const float> b, std::span<float> y);
void multiply(std::span<const float> a, std::span<const float> b, std::span<float> y);

/// y = factor · x.
void scale(float factor, std::span<const float> x, std::span<float> y);

/// y += share · (x − y): elements that are equal in both do not change. *Requires* share in [0, 1].
void move_towards(float share, std::span<const float> x, std::span<float> y);

/// y += x.
void accumulate(std::span<const float> x, std::span<float> y);

}  // namespace lacuna
