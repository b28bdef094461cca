// Colours and dashes of curves, by which a chart and its legend distinguish runs.
#pragma once

#include <string>

namespace lacuna {

/// How a curve is drawn: one of eight colours, and one of ten patterns of dashes.
struct CurveStyle {
  int colour = 0;
  int dash = 0;  ///< 0: a whole line
};

/// The first eight differ in colour, the next in dashes too; from the eighty-first on they repeat.
CurveStyle style_of(int index);

/// "#0072b2", as on a light page; page.css has both the light and the dark ones as --c0 to --c7.
const char* colour_of(int index);
/// The lengths of dashes and gaps, "7 3", empty for a whole line.
const char* dashes_of(int index);
/// Attributes of an SVG line or curve: class and dashes.
std::string style_attributes(const CurveStyle& style);
/// A short line in that style, to stand in a key or a table.
std::string swatch(const CurveStyle& style);

}  // namespace lacuna
