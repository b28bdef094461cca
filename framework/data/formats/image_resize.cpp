#include "lacuna/framework/data/formats/image_resize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lacuna {
namespace {

// Weights are fixed-point numbers with this many fraction bits: sums of 255 times them fit 32 bits.
constexpr int kWeightBits = 22;

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// The pixels of a line that one pixel of the result is the mean of.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;  // they sum to 1
  int64_t end() const { return first + static_cast<int64_t>(weights.size()); }
};

// For each of `out` pixels that share the part [begin, begin + length) of a line of `in` pixels.
std::vector<Taps> triangle_taps(int64_t in, double begin, double length, int64_t out) {
  const double scale = length / static_cast<double>(out);
  const double reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(out));
  std::vector<double> weights;
  for (int64_t i = 0; i < out; ++i) {
    Taps& taps = all[static_cast<size_t>(i)];
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    taps.first = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + reach + 0.5), in);
    weights.clear();
    double sum = 0;
    for (int64_t at = taps.first; at < end; ++at) {
      const double distance = (static_cast<double>(at) - centre + 0.5) / reach;
      weights.push_back(std::max(0.0, 1.0 - std::abs(distance)));
      sum += weights.back();
    }
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kWeightBits)));
    }
  }
  return all;
}

// Rows first to last − 1 of `image`, of as many pixels each as there are taps.
Image resize_rows(const Image& image, int64_t first, int64_t last,
                  const std::vector<Taps>& columns) {
  Image result{.height = last - first,
               .width = static_cast<int64_t>(columns.size()),
               .channels = image.channels,
               .pixels = {}};
  result.pixels.resize(static_cast<size_t>(result.height * result.width * result.channels));
  uint8_t* out = result.pixels.data();
  for (int64_t y = first; y < last; ++y) {
    const uint8_t* row = image.pixels.data() + y * image.width * image.channels;
    for (const Taps& taps : columns) {
      for (int64_t c = 0; c < image.channels; ++c) {
        const uint8_t* in = row + taps.first * image.channels + c;
        int32_t sum = 0;
        for (const int32_t weight : taps.weights) {
          sum += weight * *in;
          in += image.channels;
        }
        *out++ = rounded(sum);
      }
    }
  }
  return result;
}

Image resize_columns(const Image& image, const std::vector<Taps>& rows) {
  Image result{.height = static_cast<int64_t>(rows.size()),
               .width = image.width,
               .channels = image.channels,
               .pixels = {}};
  const int64_t line = image.width * image.channels;
  result.pixels.resize(rows.size() * static_cast<size_t>(line));
  std::vector<int32_t> sums(static_cast<size_t>(line));
  uint8_t* out = result.pixels.data();
  for (const Taps& taps : rows) {
    std::ranges::fill(sums, 0);
    const uint8_t* in = image.pixels.data() + taps.first * line;
    for (const int32_t weight : taps.weights) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * in[i];
      in += line;
    }
    out = std::ranges::transform(sums, out, rounded).out;
  }
  return result;
}

Image to_grey(const Image& image) {
  Image grey{.height = image.height, .width = image.width, .channels = 1, .pixels = {}};
  grey.pixels.resize(image.pixels.size() / 3);
  const uint8_t* in = image.pixels.data();
  for (uint8_t& pixel : grey.pixels) {
    pixel = static_cast<uint8_t>((in[0] * 19595 + in[1] * 38470 + in[2] * 7471 + 0x8000) >> 16);
    in += 3;
  }
  return grey;
}

// The part of `image` that has the result's proportions becomes the result.
Image cropped_to_size(const Image& image, int64_t height, int64_t width) {
  const auto full_height = static_cast<double>(image.height);
  const auto full_width = static_cast<double>(image.width);
  const double scale =
      std::min(full_height / static_cast<double>(height), full_width / static_cast<double>(width));
  const auto taps = [&](int64_t in, int64_t out) {
    const double length = scale * static_cast<double>(out);
    return triangle_taps(in, 0.5 * (static_cast<double>(in) - length), length, out);
  };
  std::vector<Taps> rows = taps(image.height, height);
  // Only the rows that are needed: a strip of another shape than the result may have many more.
  const int64_t first = rows.front().first, last = rows.back().end();
  for (Taps& row : rows) row.first -= first;
  return resize_columns(resize_rows(image, first, last, taps(image.width, width)), rows);
}

}  // namespace

void fit_image(const Image& image, int64_t channels, int64_t height, int64_t width,
               std::span<uint8_t> out) {
  const bool becomes_grey = channels == 1 && image.channels == 3;
  const Image fitted = cropped_to_size(becomes_grey ? to_grey(image) : image, height, width);
  auto next = out.begin();
  for (int64_t channel = 0; channel < channels; ++channel) {
    const int64_t from = fitted.channels == 1 ? 0 : channel;
    for (int64_t i = 0; i < height * width; ++i) {
      *next++ = fitted.pixels[static_cast<size_t>(i * fitted.channels + from)];
    }
  }
}

}  // namespace lacuna
