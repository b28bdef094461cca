// Dense 1×1 convolutions on image slabs, over rows of pixels.
//
// A tile of outputs × pixels stays in registers while the input planes are processed: a loaded line
// serves all outputs of the tile, and a weight all its pixels, so the multiply-adds bound the loop.
// The weight gradient keeps a tile of outputs × inputs over all pixels.
#include "lacuna/framework/kernels/conv/channel_lines.hpp"

#include "lacuna/framework/core/image_slabs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/conv/channel_lines.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/conv/lines.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void multiply(const ChannelRun& run) {
  const auto at = [&](int64_t row, int64_t line) { return row * run.to_row + line; };
  for (int64_t o = 0; o < run.outputs; ++o) {
    float* plane = run.to + o * run.to_plane;
    for (int64_t row = 0; row < run.rows; ++row) {
      for (int64_t i = 0; i < (run.to_width + 1) * kImageSlabWidth; ++i) plane[at(row, i)] = 0.0f;
      for (int64_t i = 0; i < run.width * kImageSlabWidth; ++i) {
        const int64_t pixel = i / kImageSlabWidth, lane = i % kImageSlabWidth;
        float sum = run.bias == nullptr ? 0.0f : run.bias[o];
        for (int64_t c = 0; c < run.inputs; ++c) {
          sum += run.weight[o * run.weight_output + c * run.weight_input] *
                 run.from[c * run.from_plane + row * run.from_row +
                          pixel * run.from_step * kImageSlabWidth + lane];
        }
        plane[at(row, pixel * run.to_step * kImageSlabWidth + lane)] = sum;
      }
    }
  }
}

void add_gradient(const ChannelGradientRun& run) {
  for (int64_t o = 0; o < run.outputs; ++o) {
    for (int64_t c = 0; c < run.inputs; ++c) {
      float sum = 0.0f;
      for (int64_t row = 0; row < run.rows; ++row) {
        for (int64_t i = 0; i < run.width * kImageSlabWidth; ++i) {
          const int64_t pixel = i / kImageSlabWidth, lane = i % kImageSlabWidth;
          sum += run.dy[o * run.dy_plane + row * run.dy_row + i] *
                 run.x[c * run.x_plane + row * run.x_row + pixel * run.x_step * kImageSlabWidth +
                       lane];
        }
      }
      run.gradient[o * run.inputs + c] += sum;
    }
  }
}

#else

// Sixteen sums, or eight with sixteen registers.
constexpr int kTileOutputs = HWY_TARGET == HWY_SSE4 ? 2 : 4;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kTilePixels = 4, kTileInputs = 4;
#else
constexpr int kTilePixels = 1, kTileInputs = 2;
#endif

// The next tile in the row, or the first one of the next row.
struct NextTile {
  const float* from = nullptr;
  float* to = nullptr;
};

template <int kPixels, int kStep>
HWY_INLINE void fetch_pixels(const float* at) {
  HWY_UNROLL(8)
  for (int p = 0; p < kPixels * kStep; ++p) __builtin_prefetch(at + p * kImageSlabWidth, 0, 2);
}

// One tile: outputs from `output` on, pixels from `from` and `to` on. Prefetches the same outputs
// of the next tile, and an equal part of its inputs.
template <int kOutputs, int kPixels, int kFromStep, int kToStep>
HWY_INLINE void multiply_tile(const ChannelRun& run, int64_t output, const float* from, float* to,
                              const NextTile& next, bool ends_row) {
  Vector sums[kOutputs][kPixels][kLineVectors];
  for (int o = 0; o < kOutputs; ++o) {
    const float start = run.bias == nullptr ? 0.0f : run.bias[output + o];
    for (int p = 0; p < kPixels; ++p) {
      for (int v = 0; v < kLineVectors; ++v) sums[o][p][v] = hn::Set(Floats(), start);
    }
  }
  if (next.from != nullptr) {
    const int64_t end = (output + kOutputs) * run.inputs / run.outputs;
    for (int64_t i = output * run.inputs / run.outputs; i < end; ++i) {
      fetch_pixels<kPixels, kFromStep>(next.from + i * run.from_plane);
    }
    for (int o = 0; o < kOutputs; ++o) {
      fetch_pixels<kPixels, kToStep>(next.to + (output + o) * run.to_plane);
    }
  }
  const float* weight = run.weight + output * run.weight_output;
  for (int64_t i = 0; i < run.inputs; ++i, from += run.from_plane, weight += run.weight_input) {
    Vector factors[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      factors[o] = hn::Set(Floats(), weight[o * run.weight_output]);
    }
    HWY_UNROLL(8)
    for (int p = 0; p < kPixels; ++p) {
      for (int v = 0; v < kLineVectors; ++v) {
        Vector line = load_line(from, p * kFromStep, v);
        keep_in_register(line);
        for (int o = 0; o < kOutputs; ++o) {
          sums[o][p][v] = hn::MulAdd(factors[o], line, sums[o][p][v]);
        }
      }
    }
  }
  const Vector zero = hn::Zero(Floats());
  for (int o = 0; o < kOutputs; ++o) {
    float* into = to + (output + o) * run.to_plane;
    for (int p = 0; p < kPixels; ++p) {
      for (int v = 0; v < kLineVectors; ++v) {
        store_line(sums[o][p][v], into, p * kToStep, v);
        if (kToStep == 2) store_line(zero, into, p * kToStep + 1, v);
      }
    }
    if (kToStep == 1 && ends_row) {
      for (int v = 0; v < kLineVectors; ++v) store_line(zero, into, kPixels, v);
    }
  }
  // The line after a row of even width is not between two pixels.
  if (kToStep == 2 && ends_row && run.to_width % 2 == 0) {
    for (int o = 0; o < kOutputs; ++o) {
      float* into = to + (output + o) * run.to_plane;
      for (int v = 0; v < kLineVectors; ++v) store_line(zero, into, kPixels * 2, v);
    }
  }
}

template <int kPixels, int kFromStep, int kToStep>
HWY_INLINE void multiply_pixels(const ChannelRun& run, int64_t row, int64_t column) {
  const bool ends_row = column + kPixels == run.width;
  const float* from = run.from + row * run.from_row + column * kFromStep * kImageSlabWidth;
  float* to = run.to + row * run.to_row + column * kToStep * kImageSlabWidth;
  NextTile next;
  if (!ends_row) {
    next = {from + kPixels * kFromStep * kImageSlabWidth, to + kPixels * kToStep * kImageSlabWidth};
  } else if (row + 1 < run.rows) {
    next = {run.from + (row + 1) * run.from_row, run.to + (row + 1) * run.to_row};
  }
  int64_t output = 0;
  for (; output + kTileOutputs <= run.outputs; output += kTileOutputs) {
    multiply_tile<kTileOutputs, kPixels, kFromStep, kToStep>(run, output, from, to, next, ends_row);
  }
  for (; output < run.outputs; ++output) {
    multiply_tile<1, kPixels, kFromStep, kToStep>(run, output, from, to, next, ends_row);
  }
}

template <int kFromStep, int kToStep>
void multiply_rows(const ChannelRun& run) {
  for (int64_t row = 0; row < run.rows; ++row) {
    int64_t column = 0;
    for (; column + kTilePixels <= run.width; column += kTilePixels) {
      multiply_pixels<kTilePixels, kFromStep, kToStep>(run, row, column);
    }
    for (; column < run.width; ++column) multiply_pixels<1, kFromStep, kToStep>(run, row, column);
  }
}

void multiply(const ChannelRun& run) {
  if (run.from_step == 2) {
    multiply_rows<2, 1>(run);
  } else if (run.to_step == 2) {
    multiply_rows<1, 2>(run);
  } else {
    multiply_rows<1, 1>(run);
  }
}

template <int kOutputs, int kInputs, int kStep>
HWY_INLINE void add_tile(const ChannelGradientRun& run, int64_t output, int64_t input) {
  Vector sums[kOutputs][kInputs];
  for (int o = 0; o < kOutputs; ++o) {
    for (int i = 0; i < kInputs; ++i) sums[o][i] = hn::Zero(Floats());
  }
  for (int64_t row = 0; row < run.rows; ++row) {
    const float* dy = run.dy + output * run.dy_plane + row * run.dy_row;
    const float* x = run.x + input * run.x_plane + row * run.x_row;
    for (int64_t column = 0; column < run.width; ++column) {
      for (int v = 0; v < kLineVectors; ++v) {
        Vector factors[kOutputs];
        for (int o = 0; o < kOutputs; ++o) factors[o] = load_line(dy + o * run.dy_plane, 0, v);
        for (int i = 0; i < kInputs; ++i) {
          Vector line = load_line(x + i * run.x_plane, 0, v);
          keep_in_register(line);
          for (int o = 0; o < kOutputs; ++o) {
            sums[o][i] = hn::MulAdd(factors[o], line, sums[o][i]);
          }
        }
      }
      dy += kImageSlabWidth;
      x += kStep * kImageSlabWidth;
    }
  }
  for (int o = 0; o < kOutputs; ++o) {
    const auto sum = [&](int i) HWY_ATTR { return sums[o][i < kInputs ? i : 0]; };
    put<kInputs, true>(add_blocks(block_sums_of(sum(0), sum(1), sum(2), sum(3))),
                       run.gradient + (output + o) * run.inputs + input);
  }
}

template <int kOutputs, int kStep>
HWY_INLINE void add_outputs(const ChannelGradientRun& run, int64_t output) {
  int64_t input = 0;
  for (; input + kTileInputs <= run.inputs; input += kTileInputs) {
    add_tile<kOutputs, kTileInputs, kStep>(run, output, input);
  }
  for (; input < run.inputs; ++input) add_tile<kOutputs, 1, kStep>(run, output, input);
}

template <int kStep>
void add_rows(const ChannelGradientRun& run) {
  int64_t output = 0;
  for (; output + kTileOutputs <= run.outputs; output += kTileOutputs) {
    add_outputs<kTileOutputs, kStep>(run, output);
  }
  for (; output < run.outputs; ++output) add_outputs<1, kStep>(run, output);
}

void add_gradient(const ChannelGradientRun& run) {
  if (run.x_step == 2) {
    add_rows<2>(run);
  } else {
    add_rows<1>(run);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(multiply);
HWY_EXPORT(add_gradient);

}  // namespace

void multiply_channels(const ChannelRun& run) { HWY_DYNAMIC_DISPATCH(multiply)(run); }

void add_channel_gradient(const ChannelGradientRun& run) {
  HWY_DYNAMIC_DISPATCH(add_gradient)(run);
}

}  // namespace lacuna
#endif  // HWY_ONCE
