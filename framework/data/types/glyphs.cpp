#include "lacuna/framework/data/types/glyphs.h"

#include <algorithm>
#include <span>

#include "lacuna/framework/data/types/glyph_drawing.hpp"

namespace lacuna {
namespace {

// See the ranges in glyph_drawing.cpp: with them these set how hard the digits are.
constexpr float kStrayProbability = 0.5f;
constexpr float kMaxNoise = 0.25f;  // largest amplitude of the pixel noise, of 1

// Light ink on a dark ground, and noise.
void write_pixels(const GlyphCanvas& canvas, const GlyphDraws& draws, float noise,
                  std::span<uint8_t> pixels) {
  const std::span<const float> ink = canvas.ink();
  draws.noise(pixels);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = byte_of(ink[i] + noise * (static_cast<float>(pixels[i]) / 127.5f - 1.0f));
  }
}

}  // namespace

Glyph draw_glyph(uint64_t seed, std::string_view split, int64_t index) {
  Glyph glyph;
  glyph.label = glyph_label(seed, split, index);
  GlyphDraws draws(seed, split, index);
  GlyphCanvas canvas(static_cast<int>(kGlyphSide));
  draw_digit(glyph.label, draws, canvas);
  if (draws.uniform(0, 1) < kStrayProbability) draw_stray(draws, canvas);
  write_pixels(canvas, draws, draws.uniform(0, kMaxNoise), glyph.pixels);
  return glyph;
}

DataSplits load_glyphs(const Config& data, uint64_t /*seed*/) {
  const GlyphKeys keys = read_glyph_keys(data);
  const auto draw_split = [&](std::string_view split, int64_t size) {
    return draw_examples({kGlyphSide, kGlyphSide}, size,
                         [&](int64_t index, std::span<uint8_t> pixels) {
                           const Glyph glyph = draw_glyph(keys.seed, split, index);
                           std::ranges::copy(glyph.pixels, pixels.begin());
                           return glyph.label;
                         });
  };
  DataSplits splits;
  splits.train = draw_split(kGlyphsTrain, keys.train_size);
  splits.test = draw_split(kGlyphsTest, keys.test_size);
  return splits;
}

}  // namespace lacuna
