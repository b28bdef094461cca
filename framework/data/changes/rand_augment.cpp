#include "lacuna/framework/data/changes/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {
namespace {

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

int64_t plane_of(const ByteImage& image) { return image.height * image.width; }

// Pixel (x, y) becomes the one nearest to (a x + b y + c, d x + e y + f), with x and y counted from
// the middle.
struct Map {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

void transform(const Map& map, const ByteImage& image) {
  const std::vector<uint8_t> from(image.pixels.begin(), image.pixels.end());
  const double middle_x = 0.5 * static_cast<double>(image.width - 1),
               middle_y = 0.5 * static_cast<double>(image.height - 1);
  for (int64_t row = 0; row < image.height; ++row) {
    for (int64_t column = 0; column < image.width; ++column) {
      const double x = static_cast<double>(column) - middle_x,
                   y = static_cast<double>(row) - middle_y;
      const auto source_x =
          static_cast<int64_t>(std::floor(map.a * x + map.b * y + map.c + middle_x + 0.5));
      const auto source_y =
          static_cast<int64_t>(std::floor(map.d * x + map.e * y + map.f + middle_y + 0.5));
      const bool is_inside =
          source_x >= 0 && source_x < image.width && source_y >= 0 && source_y < image.height;
      for (int64_t channel = 0; channel < image.channels; ++channel) {
        const int64_t begin = channel * plane_of(image);
        image.pixels[static_cast<size_t>(begin + row * image.width + column)] =
            is_inside ? from[static_cast<size_t>(begin + source_y * image.width + source_x)] : 0;
      }
    }
  }
}

// The brightness of each pixel; of other than three channels their mean.
std::vector<double> grey_of(const ByteImage& image) {
  const auto plane = static_cast<size_t>(plane_of(image));
  std::vector<double> grey(plane);
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    constexpr std::array kLuma = {0.299, 0.587, 0.114};
    const double weight = image.channels == 3 ? kLuma[static_cast<size_t>(channel)]
                                              : 1.0 / static_cast<double>(image.channels);
    const uint8_t* pixels = image.pixels.data() + static_cast<size_t>(channel) * plane;
    for (size_t i = 0; i < plane; ++i) grey[i] += weight * pixels[i];
  }
  return grey;
}

// What lies `factor` times as far from `base(channel, i)`.
template <class Base>
void blend(double factor, const ByteImage& image, Base&& base) {
  const int64_t plane = plane_of(image);
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    for (int64_t i = 0; i < plane; ++i) {
      uint8_t& pixel = image.pixels[static_cast<size_t>(channel * plane + i)];
      const double from = base(channel, i);
      pixel = to_byte(from + factor * (pixel - from));
    }
  }
}

void sharpen(double factor, const ByteImage& image) {
  const std::vector<uint8_t> from(image.pixels.begin(), image.pixels.end());
  const int64_t width = image.width;
  blend(factor, image, [&](int64_t channel, int64_t i) -> double {
    const int64_t row = i / width, column = i % width;
    const uint8_t* pixel = from.data() + channel * plane_of(image) + i;
    if (row == 0 || row == image.height - 1 || column == 0 || column == width - 1) return *pixel;
    double sum = 4.0 * *pixel;  // the middle counts five times
    for (int64_t down = -1; down <= 1; ++down) {
      for (int64_t right = -1; right <= 1; ++right) sum += pixel[down * width + right];
    }
    return sum / 13.0;
  });
}

// Each channel through a table of its own.
template <class Table>
void look_up(const ByteImage& image, Table&& table_of) {
  const auto plane = static_cast<size_t>(plane_of(image));
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    const auto pixels = image.pixels.subspan(static_cast<size_t>(channel) * plane, plane);
    std::array<uint8_t, 256> table{};
    table_of(pixels, table);
    for (uint8_t& pixel : pixels) pixel = table[pixel];
  }
}

void autocontrast(const ByteImage& image) {
  look_up(image, [](std::span<const uint8_t> pixels, std::array<uint8_t, 256>& table) {
    const auto [low, high] = std::ranges::minmax(pixels);
    for (int value = 0; value < 256; ++value) {
      table[static_cast<size_t>(value)] =
          high == low ? static_cast<uint8_t>(value) : to_byte(255.0 * (value - low) / (high - low));
    }
  });
}

// As PIL's: the largest value that occurs is not counted into a step, and half a step is added.
void equalize(const ByteImage& image) {
  look_up(image, [](std::span<const uint8_t> pixels, std::array<uint8_t, 256>& table) {
    std::array<int64_t, 256> counts{};
    for (const uint8_t pixel : pixels) ++counts[pixel];
    const int64_t last = counts[std::ranges::max(pixels)];
    const int64_t step = (static_cast<int64_t>(pixels.size()) - last) / 255;
    int64_t sum = step / 2;
    for (size_t value = 0; value < 256; ++value) {
      table[value] = step == 0 ? static_cast<uint8_t>(value)
                               : static_cast<uint8_t>(std::min<int64_t>(sum / step, 255));
      sum += counts[value];
    }
  });
}

void each_pixel(const ByteImage& image, auto&& change) {
  for (uint8_t& pixel : image.pixels) pixel = change(pixel);
}

}  // namespace

void apply(ImageOperation operation, double strength, const ByteImage& image) {
  if (image.pixels.empty()) return;
  const double factor = 1.0 + 0.9 * strength;
  switch (operation) {
    case ImageOperation::Identity:
      return;
    case ImageOperation::ShearX:
      return transform({.b = 0.3 * strength}, image);
    case ImageOperation::ShearY:
      return transform({.d = 0.3 * strength}, image);
    case ImageOperation::TranslateX:
      return transform({.c = 150.0 / 331.0 * strength * static_cast<double>(image.width)}, image);
    case ImageOperation::TranslateY:
      return transform({.f = 150.0 / 331.0 * strength * static_cast<double>(image.height)}, image);
    case ImageOperation::Rotate: {
      const double angle = std::numbers::pi / 6.0 * strength;
      const double c = std::cos(angle), s = std::sin(angle);
      return transform({.a = c, .b = s, .d = -s, .e = c}, image);
    }
    case ImageOperation::Brightness:
      return blend(factor, image, [](int64_t, int64_t) { return 0.0; });
    case ImageOperation::Color:
      if (image.channels != 3) return;
      return blend(factor, image, [grey = grey_of(image)](int64_t, int64_t i) {
        return grey[static_cast<size_t>(i)];
      });
    case ImageOperation::Contrast: {
      double sum = 0.0;
      for (const double value : grey_of(image)) sum += value;
      const double mean = sum / static_cast<double>(plane_of(image));
      return blend(factor, image, [mean](int64_t, int64_t) { return mean; });
    }
    case ImageOperation::Sharpness:
      return sharpen(factor, image);
    case ImageOperation::Posterize: {
      const auto dropped = static_cast<unsigned>(std::lround(4.0 * strength));
      return each_pixel(image, [dropped](uint8_t pixel) {
        return static_cast<uint8_t>(pixel >> dropped << dropped);
      });
    }
    case ImageOperation::Solarize:
      return each_pixel(image, [threshold = 255.0 * (1.0 - strength)](uint8_t pixel) {
        return pixel >= threshold ? static_cast<uint8_t>(255 - pixel) : pixel;
      });
    case ImageOperation::AutoContrast:
      return autocontrast(image);
    case ImageOperation::Equalize:
      return equalize(image);
  }
}

std::vector<uint32_t> draw_operations(const RandAugmentOptions& options, const CounterRng& rng,
                                      std::span<const int64_t> examples) {
  constexpr auto kMost = static_cast<uint64_t>(RandAugmentOptions::kMostOperations);
  std::vector<uint64_t> numbers;
  numbers.reserve(2 * static_cast<size_t>(options.operations) * examples.size());
  for (const int64_t example : examples) {
    for (uint64_t i = 0; i < static_cast<uint64_t>(options.operations); ++i) {
      const uint64_t place = 2 * (static_cast<uint64_t>(example) * kMost + i);
      numbers.push_back(place);      // of the operation
      numbers.push_back(place + 1);  // of its sign
    }
  }
  std::vector<uint32_t> words(4 * numbers.size());
  draw_blocks(rng, numbers, words);
  return words;
}

void rand_augment(const RandAugmentOptions& options, std::span<const uint32_t> words,
                  const ByteImage& image) {
  const double m = options.magnitude / RandAugmentOptions::kLargestMagnitude;
  for (size_t i = 0; i < static_cast<size_t>(options.operations); ++i) {
    const auto operation = static_cast<ImageOperation>(
        CounterRng::below_of(drawn_block(words, 2 * i), kImageOperations));
    const bool has_sign =
        operation != ImageOperation::Posterize && operation != ImageOperation::Solarize;
    const bool is_negative =
        has_sign && CounterRng::below_of(drawn_block(words, 2 * i + 1), 2) == 1;
    apply(operation, is_negative ? -m : m, image);
  }
}

}  // namespace lacuna
