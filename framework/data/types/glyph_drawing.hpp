// What the `glyphs` and `colour_glyphs` datasets share: a pen, and examples that are drawn with it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/types/glyph_shapes.hpp"
#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {

inline constexpr int kGlyphDigits = 10;

/// A level of light as a byte: rounded, and held between black (0) and white (1). In double
/// precision, adding a half is exact, so this is std::lround, at a fraction of its cost.
inline uint8_t byte_of(float level) {
  return static_cast<uint8_t>(std::clamp(static_cast<int>(255.0f * level + 0.5), 0, 255));
}

/// The random numbers of one example: uniform, in the order of the calls.
class GlyphDraws {
 public:
  GlyphDraws(uint64_t seed, std::string_view split, int64_t index)
      : rng_(seed, split, static_cast<uint64_t>(index)), words_(rng_) {}
  float uniform(float low, float high) {
    return low + (high - low) * CounterRng::uniform_of(words_.next());
  }
  int below(int bound) {
    return std::min(bound - 1, static_cast<int>(uniform(0, static_cast<float>(bound))));
  }
  /// Pixel noise: uniform bytes, from blocks far from where the other draws come.
  void noise(std::span<uint8_t> bytes) const;

 private:
  static constexpr uint64_t kNoise = uint64_t{1} << 32;
  CounterRng rng_;
  DrawnWords words_;
};

/// Ink in [0, 1] on a square of pixels: for each pixel the most that a stroke has left there.
class GlyphCanvas {
 public:
  explicit GlyphCanvas(int side);

  /// Lays a stroke of a round pen of `radius` pixels; edges fade over one pixel.
  void stroke(std::span<const GlyphPoint> chain, float radius, float ink);
  /// Row by row.
  std::span<const float> ink() const { return ink_; }
  int side() const { return side_; }

 private:
  struct Box {
    int top, bottom, left, right;  // the pixels [top, bottom) × [left, right)
  };
  // The pixels that a pen of that reach touches on its way along the points.
  Box around(std::span<const GlyphPoint> points, float reach) const;
  void piece(std::span<const GlyphPoint> ends, float reach);

  int side_;
  std::vector<float> ink_;
  std::vector<float>
      distance_;  // squared, to the nearest piece of the stroke at hand, within reach
};

/// What example `index` of a split shows: of the examples 10·k … 10·k + 9 each is another digit.
int glyph_label(uint64_t seed, std::string_view split, int64_t index);

/// A digit, drawn in one of its ways, bent, turned, stretched and moved; in sizes that fit the
/// canvas.
void draw_digit(int digit, GlyphDraws& draws, GlyphCanvas& canvas);

/// A short thin stroke anywhere.
void draw_stray(GlyphDraws& draws, GlyphCanvas& canvas);

/// `train_size`, `test_size` and `seed` of the section `data`. *Errors:* ConfigError.
struct GlyphKeys {
  int64_t train_size = 20000, test_size = 4000;
  uint64_t seed = 0;
};
GlyphKeys read_glyph_keys(const Config& data);

/// `size` examples of bytes, each of which `draw(index, pixels)` writes; it returns the label.
std::shared_ptr<const ArrayDataset> draw_examples(
    const Shape& shape, int64_t size,
    const std::function<int(int64_t index, std::span<uint8_t> pixels)>& draw);

}  // namespace lacuna
