// The skeletons of the ten digits that the `glyphs` dataset draws from.
#pragma once

#include <span>
#include <vector>

namespace lacuna {

/// A place in the unit square a digit fills: x to the right, y down.
struct GlyphPoint {
  float x = 0, y = 0;
};

enum class GlyphCurve {
  Line,    ///< straight from point to point
  Spline,  ///< a smooth curve through the points
};

struct GlyphStroke {
  GlyphCurve curve;
  std::vector<GlyphPoint> points;
};

/// The strokes of one way to write a digit.
using GlyphShape = std::vector<GlyphStroke>;

/// The ways to write `digit`, 0 to 9. *Requires* a digit.
std::span<const GlyphShape> glyph_shapes(int digit);

}  // namespace lacuna
