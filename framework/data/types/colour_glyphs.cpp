#include "lacuna/framework/data/types/colour_glyphs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "lacuna/framework/data/types/glyph_drawing.hpp"

namespace lacuna {
namespace {

// Red, green and blue in [0, 1].
using Colour = std::array<float, 3>;

constexpr int kSide = static_cast<int>(kColourGlyphSide);
constexpr float kMinContrast = 0.5f;   // of the digit to both ends of the ground, of at most √3
constexpr float kMaxGradient = 0.25f;  // from one end of the ground to the other, in each channel
constexpr int kMaxStrays = 3;
constexpr float kMaxColourNoise = 0.15f;  // largest amplitude of the pixel noise, of 1

float distance(const Colour& a, const Colour& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

Colour draw_colour(GlyphDraws& draws) {
  Colour colour{};
  for (float& channel : colour) channel = draws.uniform(0, 1);
  return colour;
}

// Colours around the ground's ends are drawn again; at least a third of all are others.
Colour draw_contrast(GlyphDraws& draws, const Colour& from, const Colour& to) {
  while (true) {
    const Colour colour = draw_colour(draws);
    if (std::min(distance(colour, from), distance(colour, to)) >= kMinContrast) return colour;
  }
}

// What the strokes lie on: one colour at one end of the image, another at the other.
struct Ground {
  Colour from{}, to{};
  float x = 0, y = 0;  // the way across, so that (x, y) of pixels gives −1 to 1

  float at(int column, int row, size_t channel) const {
    constexpr float kCentre = 0.5f * (kSide - 1);
    const float along =
        x * (static_cast<float>(column) - kCentre) + y * (static_cast<float>(row) - kCentre);
    return from[channel] + (0.5f + 0.5f * along) * (to[channel] - from[channel]);
  }
};

Ground draw_ground(GlyphDraws& draws) {
  Ground ground;
  ground.from = draw_colour(draws);
  for (size_t c = 0; c < 3; ++c) {
    ground.to[c] =
        std::clamp(ground.from[c] + draws.uniform(-kMaxGradient, kMaxGradient), 0.0f, 1.0f);
  }
  const float angle = draws.uniform(0, 2 * std::numbers::pi_v<float>);
  constexpr float kReach = std::numbers::sqrt2_v<float> / kSide;  // 1 over half of the diagonal
  ground.x = kReach * std::cos(angle);
  ground.y = kReach * std::sin(angle);
  return ground;
}

// In each channel: the ground, over it the stray strokes, over them the digit.
struct Layers {
  Ground ground;
  GlyphCanvas strays{kSide}, digit{kSide};
  Colour stray_colour{}, digit_colour{};

  float at(int column, int row, size_t channel) const {
    const auto pixel = static_cast<size_t>(row * kSide + column);
    float level = ground.at(column, row, channel);
    level += strays.ink()[pixel] * (stray_colour[channel] - level);
    level += digit.ink()[pixel] * (digit_colour[channel] - level);
    return level;
  }
};

void write_pixels(const Layers& layers, const GlyphDraws& draws, float noise,
                  std::span<uint8_t> pixels) {
  draws.noise(pixels);
  uint8_t* pixel = pixels.data();
  for (size_t channel = 0; channel < 3; ++channel) {
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column, ++pixel) {
        const float level =
            layers.at(column, row, channel) + noise * (static_cast<float>(*pixel) / 127.5f - 1.0f);
        *pixel = static_cast<uint8_t>(std::clamp(static_cast<int>(255.0f * level + 0.5f), 0, 255));
      }
    }
  }
}

}  // namespace

ColourGlyph draw_colour_glyph(uint64_t seed, std::string_view split, int64_t index) {
  ColourGlyph glyph;
  glyph.label = glyph_label(seed, split, index);
  GlyphDraws draws(seed, split, index);
  Layers layers;
  layers.ground = draw_ground(draws);
  layers.digit_colour = draw_contrast(draws, layers.ground.from, layers.ground.to);
  layers.stray_colour = draw_colour(draws);
  draw_digit(glyph.label, draws, layers.digit);
  const int strays = draws.below(kMaxStrays + 1);
  for (int i = 0; i < strays; ++i) draw_stray(draws, layers.strays);
  write_pixels(layers, draws, draws.uniform(0, kMaxColourNoise), glyph.pixels);
  return glyph;
}

DataSplits load_colour_glyphs(const Config& data, uint64_t /*seed*/) {
  const GlyphKeys keys = read_glyph_keys(data);
  const auto draw_split = [&](std::string_view split, int64_t size) {
    return draw_examples({3, kColourGlyphSide, kColourGlyphSide}, size,
                         [&](int64_t index, std::span<uint8_t> pixels) {
                           const ColourGlyph glyph = draw_colour_glyph(keys.seed, split, index);
                           std::ranges::copy(glyph.pixels, pixels.begin());
                           return glyph.label;
                         });
  };
  DataSplits splits;
  splits.train = draw_split(kColourGlyphsTrain, keys.train_size);
  splits.test = draw_split(kColourGlyphsTest, keys.test_size);
  return splits;
}

}  // namespace lacuna
