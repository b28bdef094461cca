// The `colour_glyphs` dataset: digits in colour, drawn on the spot, for convolution without any
// files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Rows and columns of a glyph in colour.
inline constexpr int64_t kColourGlyphSide = 32;
/// The splits' names, to draw from.
inline constexpr std::string_view kColourGlyphsTrain = "colour_glyphs.train";
inline constexpr std::string_view kColourGlyphsTest = "colour_glyphs.test";

/// A drawn digit, [3, 32, 32]: rows of red, then of green, then of blue; and what it shows.
struct ColourGlyph {
  std::array<uint8_t, 3 * kColourGlyphSide * kColourGlyphSide> pixels{};
  int label = 0;
};

/// Example `index` of a split; a pure function of its arguments. The digit is drawn as those of
/// draw_glyph are, in a random colour over a ground that goes from one colour to another; the
/// digit's differs from both, in any direction of the cube of colours, so that no channel alone
/// shows every digit, and light digits are as frequent as dark ones. Up to three strokes of a third
/// colour lie below the digit, and noise over each channel. Labels as in draw_glyph. *Cost:* about
/// 60 µs.
ColourGlyph draw_colour_glyph(uint64_t seed, std::string_view split, int64_t index);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train_size`, `test_size`: number of examples. Defaults 20000 and 4000.
/// - `seed`: another seed gives other examples. Default 0, whatever the run's seed is.
///
/// Inputs are images of bytes, [3, 32, 32], in ten classes.
DataSplits load_colour_glyphs(const Config& data, uint64_t seed);

}  // namespace lacuna
