#include "lacuna/framework/data/types/glyph_drawing.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/data/changes/permutation.hpp"

namespace lacuna {
namespace {

// The ranges that set how hard the digits are. Chosen so that, after 10 epochs of Adam at 1e-3 on
// the default data of `glyphs`, softmax regression reaches 79 % of the test examples and the
// 784-300-100-10 network 98.2 %. Changing one changes the data set, and with it the results stated
// in configs/. Pixels are those of an image of 28 x 28, and grow with it.
constexpr float kUnitSide = 28.0f;
constexpr float kMaxTurn = 0.30f;                        // radians
constexpr float kMaxShear = 0.30f;                       // horizontal, per unit of height
constexpr float kMinHeight = 14.0f, kMaxHeight = 21.0f;  // pixels
constexpr float kMinAspect = 0.75f, kMaxAspect = 1.15f;  // width over height
constexpr float kMaxMove = 2.5f;                         // pixels
constexpr float kJitter = 0.04f;   // of a control point, in units of the digit's square
constexpr float kMaxWave = 0.05f;  // amplitude of the bend, in the same units
constexpr float kMinWaveFrequency = 3.0f, kMaxWaveFrequency = 8.0f;  // radians per unit
constexpr float kMinPen = 0.7f, kMaxPen = 1.7f;                      // radius of the pen, pixels
constexpr float kMinInk = 0.65f;                                     // faintest ink, of 1

// Pixels to one of an image of 28 x 28.
float unit_of(const GlyphCanvas& canvas) { return static_cast<float>(canvas.side()) / kUnitSide; }

// Where a digit's square lies in the image.
struct Placement {
  float xx, xy, yx, yy, x, y;                         // the affine map, to pixels
  float wave_x, wave_y, phase_x, phase_y, frequency;  // the bend before it

  GlyphPoint operator()(GlyphPoint p) const {
    const float bent_x = p.x - 0.5f + wave_x * std::sin(frequency * p.y + phase_x);
    const float bent_y = p.y - 0.5f + wave_y * std::sin(frequency * p.x + phase_y);
    return {x + xx * bent_x + xy * bent_y, y + yx * bent_x + yy * bent_y};
  }
};

Placement draw_placement(GlyphDraws& draws, const GlyphCanvas& canvas) {
  const float unit = unit_of(canvas);
  const float height = draws.uniform(unit * kMinHeight, unit * kMaxHeight);
  const float width = height * draws.uniform(kMinAspect, kMaxAspect);
  const float turn = draws.uniform(-kMaxTurn, kMaxTurn);
  const float shear = draws.uniform(-kMaxShear, kMaxShear);
  const float cosine = std::cos(turn), sine = std::sin(turn);
  const float centre = 0.5f * static_cast<float>(canvas.side() - 1);
  Placement place{};
  place.xx = cosine * width;
  place.yx = sine * width;
  place.xy = -sine * height + shear * cosine * height;
  place.yy = cosine * height + shear * sine * height;
  place.x = centre + unit * draws.uniform(-kMaxMove, kMaxMove);
  place.y = centre + unit * draws.uniform(-kMaxMove, kMaxMove);
  place.wave_x = draws.uniform(-kMaxWave, kMaxWave);
  place.wave_y = draws.uniform(-kMaxWave, kMaxWave);
  place.phase_x = draws.uniform(0, 2 * std::numbers::pi_v<float>);
  place.phase_y = draws.uniform(0, 2 * std::numbers::pi_v<float>);
  place.frequency = draws.uniform(kMinWaveFrequency, kMaxWaveFrequency);
  return place;
}

// A point of the Catmull-Rom spline between b and c, t in [0, 1].
GlyphPoint on_spline(GlyphPoint a, GlyphPoint b, GlyphPoint c, GlyphPoint d, float t) {
  const auto blend = [t](float p, float q, float r, float s) {
    return q + 0.5f * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

// The points of a stroke as a chain of short straight pieces, so that a bend shows in lines too.
std::vector<GlyphPoint> flatten(const GlyphStroke& stroke, std::span<const GlyphPoint> points) {
  constexpr int kPieces = 6;
  const auto last = static_cast<int>(points.size()) - 1;
  const auto at = [&](int i) { return points[static_cast<size_t>(std::clamp(i, 0, last))]; };
  std::vector<GlyphPoint> chain{points.front()};
  for (int i = 0; i < last; ++i) {
    const GlyphPoint from = at(i), to = at(i + 1);
    for (int piece = 1; piece <= kPieces; ++piece) {
      const float t = static_cast<float>(piece) / kPieces;
      chain.push_back(stroke.curve == GlyphCurve::Spline
                          ? on_spline(at(i - 1), from, to, at(i + 2), t)
                          : GlyphPoint{from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)});
    }
  }
  return chain;
}

}  // namespace

GlyphCanvas::GlyphCanvas(int side)
    : side_(side),
      ink_(static_cast<size_t>(side * side)),
      distance_(static_cast<size_t>(side * side)) {}

GlyphCanvas::Box GlyphCanvas::around(std::span<const GlyphPoint> points, float reach) const {
  GlyphPoint low = points.front(), high = low;
  for (const GlyphPoint& point : points) {
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  }
  const auto from = [&](float p) {
    return std::clamp(static_cast<int>(std::floor(p - reach)), 0, side_);
  };
  const auto to = [&](float p) {
    return std::clamp(static_cast<int>(std::ceil(p + reach)) + 1, 0, side_);
  };
  return {from(low.y), to(high.y), from(low.x), to(high.x)};
}

void GlyphCanvas::stroke(std::span<const GlyphPoint> chain, float radius, float ink) {
  const float reach = radius + 0.5f;
  const Box box = around(chain, reach);
  for (int row = box.top; row < box.bottom; ++row) {
    std::fill_n(distance_.begin() + row * side_ + box.left, std::max(box.right - box.left, 0),
                reach * reach);
  }
  for (size_t i = 0; i + 1 < chain.size(); ++i) piece(chain.subspan(i, 2), reach);
  for (int row = box.top; row < box.bottom; ++row) {
    const float* const distance = distance_.data() + row * side_;
    float* const level = ink_.data() + row * side_;
    for (int column = box.left; column < box.right; ++column) {
      const float cover = std::min(reach - std::sqrt(distance[column]), 1.0f);
      level[column] = std::max(level[column], cover * ink);
    }
  }
}

void GlyphCanvas::piece(std::span<const GlyphPoint> ends, float reach) {
  const Box box = around(ends, reach);
  const GlyphPoint a = ends[0], b = ends[1];
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length = std::max(dx * dx + dy * dy, 1e-12f);
  for (int row = box.top; row < box.bottom; ++row) {
    float* const nearest = distance_.data() + row * side_;
    const float py = static_cast<float>(row) - a.y;
    for (int column = box.left; column < box.right; ++column) {
      const float px = static_cast<float>(column) - a.x;
      const float t = std::min(std::max(px * dx + py * dy, 0.0f), length) / length;
      const float ex = px - t * dx, ey = py - t * dy;
      nearest[column] = std::min(nearest[column], ex * ex + ey * ey);
    }
  }
}

void GlyphDraws::noise(std::span<uint8_t> bytes) const {
  constexpr size_t kBlocks = 64, kBytes = 16;  // at a time; of a block
  std::array<uint64_t, kBlocks> numbers;
  std::array<uint32_t, kBlocks * kBytes / sizeof(uint32_t)> words;
  for (size_t first = 0; first < bytes.size(); first += kBlocks * kBytes) {
    const size_t count = std::min(bytes.size() - first, kBlocks * kBytes);
    const std::span<uint64_t> blocks = std::span(numbers).first((count + kBytes - 1) / kBytes);
    std::iota(blocks.begin(), blocks.end(), kNoise + first / kBytes);
    draw_blocks(rng_, blocks, std::span(words).first(blocks.size() * kBytes / sizeof(uint32_t)));
    for (size_t i = 0; i < count; ++i) {
      bytes[first + i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

int glyph_label(uint64_t seed, std::string_view split, int64_t index) {
  const std::vector<int64_t> digits =
      seeded_permutation(kGlyphDigits, seed, std::string(split) + ".labels",
                         static_cast<uint64_t>(index / kGlyphDigits));
  return static_cast<int>(digits[static_cast<size_t>(index % kGlyphDigits)]);
}

void draw_digit(int digit, GlyphDraws& draws, GlyphCanvas& canvas) {
  const std::span<const GlyphShape> shapes = glyph_shapes(digit);
  const GlyphShape& shape =
      shapes[static_cast<size_t>(draws.below(static_cast<int>(shapes.size())))];
  const Placement place = draw_placement(draws, canvas);
  const float pen = unit_of(canvas) * draws.uniform(kMinPen, kMaxPen);
  const float ink = draws.uniform(kMinInk, 1.0f);
  for (const GlyphStroke& stroke : shape) {
    std::vector<GlyphPoint> points = stroke.points;
    for (GlyphPoint& point : points) {
      point.x += draws.uniform(-kJitter, kJitter);
      point.y += draws.uniform(-kJitter, kJitter);
    }
    std::vector<GlyphPoint> chain = flatten(stroke, points);
    std::ranges::transform(chain, chain.begin(), place);
    canvas.stroke(chain, pen, ink);
  }
}

void draw_stray(GlyphDraws& draws, GlyphCanvas& canvas) {
  const auto edge = static_cast<float>(canvas.side() - 1);
  const float unit = unit_of(canvas);
  const GlyphPoint from{draws.uniform(0, edge), draws.uniform(0, edge)};
  const float angle = draws.uniform(0, 2 * std::numbers::pi_v<float>);
  const float length = unit * draws.uniform(3.0f, 10.0f);
  const GlyphPoint to{from.x + length * std::cos(angle), from.y + length * std::sin(angle)};
  const float ink = draws.uniform(0.4f, 0.9f);
  canvas.stroke(std::array{from, to}, unit * draws.uniform(0.3f, 0.8f), ink);
}

GlyphKeys read_glyph_keys(const Config& data) {
  const auto size_of = [&](std::string_view key, int64_t fallback) {
    const int64_t size = require_at_least(data, key, data.get<int64_t>(key, fallback), 1);
    if (size > int64_t{1} << 24) data.get(key).fail("at most 16777216 examples");
    return size;
  };
  GlyphKeys keys;
  keys.train_size = size_of("train_size", keys.train_size);
  keys.test_size = size_of("test_size", keys.test_size);
  keys.seed = read_seed(data);
  return keys;
}

std::shared_ptr<const ArrayDataset> draw_examples(
    const Shape& shape, int64_t size,
    const std::function<int(int64_t index, std::span<uint8_t> pixels)>& draw) {
  const auto bytes = static_cast<size_t>(shape.numel());
  std::vector<uint8_t> pixels(static_cast<size_t>(size) * bytes);
  std::vector<int64_t> labels(static_cast<size_t>(size));
  parallel_for(size, 256, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      labels[i] = draw(static_cast<int64_t>(i), std::span(pixels).subspan(i * bytes, bytes));
    }
  });
  Examples examples;
  examples.example_shape = shape;
  examples.inputs = std::move(pixels);
  examples.labels = std::move(labels);
  examples.num_classes = kGlyphDigits;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

}  // namespace lacuna
