// The `glyphs` dataset: digits drawn by the program, for runs without any files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Rows and columns of a glyph.
inline constexpr int64_t kGlyphSide = 28;
/// The splits' names, to draw from.
inline constexpr std::string_view kGlyphsTrain = "glyphs.train";
inline constexpr std::string_view kGlyphsTest = "glyphs.test";

/// A drawn digit: light ink (255) on a dark ground (0), row by row, and what it shows.
struct Glyph {
  std::array<uint8_t, kGlyphSide * kGlyphSide> pixels{};
  int label = 0;
};

/// Example `index` of a split; a pure function of its arguments. The examples 10·k … 10·k + 9 show
/// all ten digits, in random order. One of three ways to write the digit, its points jittered, is
/// bent by a smooth wave, turned, sheared, stretched, moved, and drawn with a pen of random width;
/// a stray stroke and pixel noise are laid over it. The label is always right.
/// docs/guides/glyphs.png shows the first ten of each digit in the training split of seed 0.
/// *Cost:* about 25 µs.
Glyph draw_glyph(uint64_t seed, std::string_view split, int64_t index);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train_size`, `test_size`: number of examples. Defaults 20000 and 4000.
/// - `seed`: another seed gives other examples. Default 0, whatever the run's seed is, so that
///   runs are compared on the same data.
///
/// Inputs are images of bytes, [28, 28], in ten classes.
DataSplits load_glyphs(const Config& data, uint64_t seed);

}  // namespace lacuna
