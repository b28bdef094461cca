#include "lacuna/framework/data/types/glyph_shapes.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace lacuna {
namespace {

using Shapes = std::vector<GlyphShape>;

GlyphStroke line(std::vector<GlyphPoint> points) { return {GlyphCurve::Line, std::move(points)}; }
GlyphStroke spline(std::vector<GlyphPoint> points) {
  return {GlyphCurve::Spline, std::move(points)};
}

Shapes zeros() {
  return {
      // round
      {spline({{.5f, .02f},
               {.27f, .15f},
               {.16f, .5f},
               {.27f, .85f},
               {.5f, .98f},
               {.73f, .85f},
               {.84f, .5f},
               {.73f, .15f},
               {.5f, .02f}})},
      // narrow
      {spline({{.5f, .02f},
               {.35f, .16f},
               {.29f, .5f},
               {.35f, .84f},
               {.5f, .98f},
               {.65f, .84f},
               {.71f, .5f},
               {.65f, .16f},
               {.5f, .02f}})},
      // begun and ended with a tail at the top
      {spline({{.68f, .1f},
               {.46f, .03f},
               {.24f, .25f},
               {.18f, .6f},
               {.34f, .93f},
               {.62f, .95f},
               {.82f, .66f},
               {.76f, .26f},
               {.52f, .1f},
               {.36f, .14f}})},
  };
}

Shapes ones() {
  return {
      {line({{.5f, .02f}, {.5f, .98f}})},
      {line({{.3f, .24f}, {.54f, .03f}, {.54f, .98f}})},
      {line({{.3f, .24f}, {.52f, .03f}, {.52f, .98f}}), line({{.27f, .98f}, {.77f, .98f}})},
  };
}

Shapes twos() {
  return {
      {spline({{.2f, .26f},
               {.32f, .07f},
               {.55f, .02f},
               {.76f, .15f},
               {.75f, .37f},
               {.55f, .63f},
               {.2f, .96f}}),
       line({{.2f, .96f}, {.82f, .96f}})},
      // with a loop at the foot
      {spline({{.22f, .2f},
               {.46f, .02f},
               {.75f, .14f},
               {.7f, .43f},
               {.43f, .8f},
               {.24f, .95f},
               {.17f, .83f},
               {.33f, .78f},
               {.56f, .92f},
               {.84f, .93f}})},
      // with a short neck and a wavy foot
      {spline({{.24f, .12f}, {.52f, .02f}, {.78f, .2f}, {.64f, .52f}, {.22f, .93f}}),
       spline({{.22f, .93f}, {.4f, .86f}, {.62f, .97f}, {.82f, .9f}})},
  };
}

Shapes threes() {
  return {
      {spline({{.22f, .13f}, {.5f, .02f}, {.75f, .15f}, {.68f, .38f}, {.42f, .48f}}),
       spline({{.42f, .48f}, {.74f, .57f}, {.81f, .8f}, {.55f, .98f}, {.2f, .88f}})},
      // with a flat top
      {line({{.2f, .04f}, {.76f, .04f}, {.44f, .42f}}),
       spline({{.44f, .42f}, {.72f, .5f}, {.8f, .75f}, {.55f, .98f}, {.2f, .9f}})},
      // in one stroke, with a small loop at the waist
      {spline({{.24f, .1f},
               {.55f, .03f},
               {.72f, .22f},
               {.52f, .46f},
               {.4f, .48f},
               {.5f, .44f},
               {.78f, .66f},
               {.64f, .95f},
               {.2f, .93f}})},
  };
}

Shapes fours() {
  return {
      // open
      {line({{.3f, .03f}, {.18f, .58f}, {.86f, .58f}}), line({{.66f, .2f}, {.64f, .98f}})},
      // closed
      {line({{.64f, .98f}, {.64f, .02f}, {.15f, .67f}, {.88f, .67f}})},
      // open, with a rounded elbow
      {spline({{.24f, .05f}, {.2f, .35f}, {.3f, .52f}, {.72f, .48f}}),
       line({{.76f, .06f}, {.7f, .98f}})},
  };
}

Shapes fives() {
  return {
      {line({{.76f, .04f}, {.3f, .04f}, {.26f, .45f}}),
       spline({{.26f, .45f}, {.5f, .36f}, {.76f, .5f}, {.78f, .78f}, {.5f, .98f}, {.2f, .88f}})},
      // in one stroke
      {spline({{.76f, .03f},
               {.4f, .07f},
               {.28f, .38f},
               {.6f, .44f},
               {.79f, .7f},
               {.6f, .95f},
               {.2f, .93f}})},
      // with the bar apart
      {spline({{.34f, .08f}, {.28f, .42f}, {.55f, .4f}, {.78f, .62f}, {.66f, .92f}, {.22f, .94f}}),
       line({{.36f, .08f}, {.82f, .03f}})},
  };
}

Shapes sixes() {
  return {
      {spline({{.7f, .04f},
               {.42f, .2f},
               {.23f, .55f},
               {.27f, .86f},
               {.5f, .98f},
               {.75f, .85f},
               {.74f, .6f},
               {.5f, .5f},
               {.25f, .68f}})},
      // with a straight stem and a small loop
      {spline({{.56f, .02f},
               {.34f, .38f},
               {.22f, .7f},
               {.34f, .95f},
               {.62f, .95f},
               {.72f, .74f},
               {.54f, .58f},
               {.26f, .74f}})},
      // with a hooked top
      {spline({{.76f, .16f},
               {.58f, .02f},
               {.32f, .17f},
               {.2f, .55f},
               {.28f, .88f},
               {.55f, .98f},
               {.79f, .78f},
               {.66f, .54f},
               {.4f, .54f},
               {.23f, .72f}})},
  };
}

Shapes sevens() {
  return {
      {line({{.18f, .05f}, {.8f, .05f}, {.4f, .98f}})},
      // with a bar
      {line({{.18f, .05f}, {.8f, .05f}, {.42f, .98f}}), line({{.34f, .5f}, {.78f, .5f}})},
      // with a serif and a curved stem
      {line({{.18f, .22f}, {.2f, .05f}, {.8f, .05f}}),
       spline({{.8f, .05f}, {.58f, .4f}, {.46f, .98f}})},
  };
}

Shapes eights() {
  return {
      // in one stroke
      {spline({{.72f, .15f},
               {.5f, .02f},
               {.28f, .15f},
               {.33f, .35f},
               {.68f, .62f},
               {.76f, .83f},
               {.5f, .98f},
               {.24f, .83f},
               {.32f, .62f},
               {.68f, .36f},
               {.72f, .15f}})},
      // two rings
      {spline({{.5f, .02f},
               {.3f, .12f},
               {.3f, .36f},
               {.5f, .46f},
               {.7f, .36f},
               {.7f, .12f},
               {.5f, .02f}}),
       spline({{.5f, .46f},
               {.25f, .58f},
               {.23f, .86f},
               {.5f, .98f},
               {.77f, .86f},
               {.75f, .58f},
               {.5f, .46f}})},
      // in one stroke, open at the top
      {spline({{.78f, .08f},
               {.5f, .03f},
               {.29f, .2f},
               {.42f, .43f},
               {.7f, .66f},
               {.68f, .92f},
               {.4f, .97f},
               {.24f, .76f},
               {.46f, .5f},
               {.82f, .14f}})},
  };
}

Shapes nines() {
  return {
      // with a straight stem
      {spline({{.74f, .3f},
               {.62f, .06f},
               {.36f, .06f},
               {.22f, .28f},
               {.36f, .5f},
               {.62f, .48f},
               {.74f, .3f}}),
       line({{.75f, .08f}, {.7f, .98f}})},
      // with a curved tail
      {spline({{.76f, .24f},
               {.58f, .03f},
               {.32f, .1f},
               {.24f, .34f},
               {.42f, .52f},
               {.66f, .44f},
               {.76f, .24f}}),
       spline({{.76f, .24f}, {.77f, .55f}, {.63f, .9f}, {.28f, .95f}})},
      // in one stroke, with a straight slanting stem
      {spline({{.72f, .16f}, {.48f, .03f}, {.25f, .2f}, {.32f, .46f}, {.58f, .45f}, {.74f, .16f}}),
       line({{.74f, .16f}, {.5f, .98f}})},
  };
}

}  // namespace

std::span<const GlyphShape> glyph_shapes(int digit) {
  static const std::array<Shapes, 10> shapes{zeros(), ones(),  twos(),   threes(), fours(),
                                             fives(), sixes(), sevens(), eights(), nines()};
  return shapes[static_cast<size_t>(digit)];
}

}  // namespace lacuna
