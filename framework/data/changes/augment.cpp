#include "lacuna/framework/data/changes/augment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {
namespace {

struct ImageSize {
  int64_t channels, height, width;
};

// Of an example, or with `first` = 1 of a batch of them.
ImageSize image_size(const Shape& shape, int first = 0) {
  return {shape.rank() - first == 3 ? shape[first] : 1, shape[-2], shape[-1]};
}

// What happens to one image.
struct Change {
  int64_t down = 0, right = 0;  // pixel (y, x) comes from (y + down, x + right), before the mirror
  bool is_flipped = false;
  int64_t top = 0, bottom = 0, left = 0, end = 0;  // covered rows and columns: from, to
};

// Beyond it all shares are near ½.
constexpr double kLargestMixup = 64.0;

// The draws of an example, each at a place of its own: switching one on changes no other.
enum Draw : uint64_t {
  kDown,
  kRight,
  kFlip,
  kCutRow,
  kCutColumn,
  kUsedDraws,
  kDrawsOfAnExample = 8
};

// The blocks of all draws of examples, one after the other.
std::vector<uint32_t> draw_examples(const CounterRng& rng, std::span<const int64_t> indices) {
  std::vector<uint64_t> numbers;
  numbers.reserve(indices.size() * kUsedDraws);
  for (const int64_t index : indices) {
    for (uint64_t draw = 0; draw < kUsedDraws; ++draw) {
      numbers.push_back(kDrawsOfAnExample * static_cast<uint64_t>(index) + draw);
    }
  }
  std::vector<uint32_t> words(4 * numbers.size());
  draw_blocks(rng, numbers, words);
  return words;
}

// `words` holds the blocks of the example's draws.
Change change_of(std::span<const uint32_t> words, const AugmentOptions& options,
                 const ImageSize& size) {
  const auto below = [&](Draw draw, int64_t bound) {
    return static_cast<int64_t>(
        CounterRng::below_of(drawn_block(words, draw), static_cast<uint64_t>(bound)));
  };
  Change change;
  if (options.crop > 0) {
    change.down = below(kDown, 2 * options.crop + 1) - options.crop;
    change.right = below(kRight, 2 * options.crop + 1) - options.crop;
  }
  change.is_flipped = options.flip && below(kFlip, 2) == 1;
  if (options.cutout > 0) {
    const int64_t top = below(kCutRow, size.height) - options.cutout / 2;
    const int64_t left = below(kCutColumn, size.width) - options.cutout / 2;
    change.top = std::max<int64_t>(top, 0);
    change.bottom = std::min(top + options.cutout, size.height);
    change.left = std::max<int64_t>(left, 0);
    change.end = std::min(left + options.cutout, size.width);
  }
  return change;
}

// One row of one channel; `in` is the row that it comes from, or null where that is padding.
void write_row(const float* in, int64_t width, const Change& change, float padding, float* out) {
  const int64_t begin = in == nullptr ? width : std::clamp<int64_t>(-change.right, 0, width);
  const int64_t end =
      in == nullptr ? width : std::clamp<int64_t>(width - change.right, begin, width);
  std::fill(out, out + begin, padding);
  if (begin < end) std::copy(in + begin + change.right, in + end + change.right, out + begin);
  std::fill(out + end, out + width, padding);
  if (change.is_flipped) std::reverse(out, out + width);
}

void write_image(const float* in, const ImageSize& size, const Change& change,
                 const std::vector<float>& padding, float* out) {
  for (int64_t channel = 0; channel < size.channels; ++channel) {
    const float pad = padding[padding.size() == 1 ? 0 : static_cast<size_t>(channel)];
    for (int64_t y = 0; y < size.height; ++y) {
      const int64_t from = y + change.down;
      const bool is_padding = from < 0 || from >= size.height;
      write_row(is_padding ? nullptr : in + from * size.width, size.width, change, pad, out);
      out += size.width;
    }
    in += size.height * size.width;
  }
}

void cover(const ImageSize& size, const Change& change, float* image) {
  for (int64_t channel = 0; channel < size.channels; ++channel) {
    for (int64_t y = change.top; y < change.bottom; ++y) {
      float* row = image + (channel * size.height + y) * size.width;
      std::fill(row + change.left, row + change.end, 0.0f);
    }
  }
}

// An image as bytes, changed there, and back as a dataset of bytes has it.
void change_bytes(const AugmentOptions& options, std::span<const uint32_t> operations,
                  const ImageSize& size, std::vector<uint8_t>& bytes, float* image) {
  const int64_t plane = size.height * size.width;
  const auto each = [&](auto&& visit) {
    for (int64_t i = 0; i < size.channels * plane; ++i) {
      const auto channel = static_cast<size_t>(i / plane);
      visit(image[i], bytes[static_cast<size_t>(i)],
            options.byte_scales[options.byte_scales.size() == 1 ? 0 : channel],
            options.byte_offsets[options.byte_offsets.size() == 1 ? 0 : channel]);
    }
  };
  each([](float value, uint8_t& byte, float scale, float offset) {
    byte = static_cast<uint8_t>(std::lround(std::clamp((value - offset) / scale, 0.0f, 255.0f)));
  });
  rand_augment(
      options.rand_augment, operations,
      {.pixels = bytes, .channels = size.channels, .height = size.height, .width = size.width});
  each([](float& value, uint8_t byte, float scale, float offset) {
    value = static_cast<float>(byte) * scale + offset;
  });
}

}  // namespace

std::string AugmentOptions::to_string() const {
  std::vector<std::string> parts;
  if (crop > 0) parts.push_back(fmt::format("crop {}", crop));
  if (flip) parts.push_back("flip");
  if (rand_augment.operations > 0) {
    parts.push_back(fmt::format("rand_augment {} of magnitude {}", rand_augment.operations,
                                rand_augment.magnitude));
  }
  if (cutout > 0) parts.push_back(fmt::format("cutout {}", cutout));
  if (mixup > 0.0) parts.push_back(fmt::format("mixup {}", mixup));
  return parts.empty() ? "none" : join(parts, ", ");
}

void require_augmentable(const AugmentOptions& options, const Shape& example_shape) {
  const auto require_positive = [](const char* name, int64_t value) {
    if (value < 0) throw DataError(fmt::format("{} must be at least 0, found {}", name, value));
  };
  require_positive("crop", options.crop);
  require_positive("cutout", options.cutout);
  if (!(options.mixup >= 0.0 && options.mixup <= kLargestMixup)) {
    throw DataError(
        fmt::format("mixup must be in [0, {}], found {}", kLargestMixup, options.mixup));
  }
  const RandAugmentOptions& rand = options.rand_augment;
  if (rand.operations < 0 || rand.operations > RandAugmentOptions::kMostOperations) {
    throw DataError(fmt::format("rand_augment's operations must be in [0, {}], found {}",
                                RandAugmentOptions::kMostOperations, rand.operations));
  }
  if (!(rand.magnitude >= 0.0 && rand.magnitude <= RandAugmentOptions::kLargestMagnitude)) {
    throw DataError(fmt::format("rand_augment's magnitude must be in [0, {}], found {}",
                                RandAugmentOptions::kLargestMagnitude, rand.magnitude));
  }
  if (!options.changes_images()) return;
  if (example_shape.rank() != 2 && example_shape.rank() != 3) {
    throw DataError(
        "only images can be augmented, [rows, columns] or [channels, rows, columns]; "
        "the examples have the shape " +
        example_shape.to_string());
  }
  const ImageSize size = image_size(example_shape);
  const auto require_inside = [&](const char* name, int64_t value) {
    if (value == 0 || value < std::min(size.height, size.width)) return;
    throw DataError(fmt::format("{} {} must be smaller than the images, which are {} x {} pixels",
                                name, value, size.height, size.width));
  };
  require_inside("crop", options.crop);
  require_inside("cutout", options.cutout);
  const auto require_values = [&](const char* name, size_t values) {
    if (values == 1 || values == static_cast<size_t>(size.channels)) return;
    throw DataError(fmt::format("{} has {} values; expected one, or one for each of {} channels",
                                name, values, size.channels));
  };
  require_values("padding", options.padding.size());
  require_values("byte_scales", options.byte_scales.size());
  require_values("byte_offsets", options.byte_offsets.size());
}

Tensor augmented(const Tensor& inputs, std::span<const int64_t> indices,
                 const AugmentOptions& options, AugmentStream stream) {
  const ImageSize size = image_size(inputs.shape(), 1);
  const CounterRng rng(stream.seed, "augment", stream.epoch),
      rand_rng(stream.seed, "rand_augment", stream.epoch);
  Tensor result = Tensor::empty(inputs.shape());
  const int64_t step = size.channels * size.height * size.width;
  std::vector<uint8_t> bytes(options.rand_augment.operations > 0 ? static_cast<size_t>(step) : 0);
  const float* in = inputs.data();
  float* out = result.mutable_data();
  const std::vector<uint32_t> words = draw_examples(rng, indices),
                              operations = draw_operations(options.rand_augment, rand_rng, indices);
  std::span<const uint32_t> rest = words, rest_of_operations = operations;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Change change = change_of(rest, options, size);
    rest = rest.subspan(4 * kUsedDraws);
    write_image(in, size, change, options.padding, out);
    if (!bytes.empty()) {
      const auto own = rest_of_operations.first(operations.size() / indices.size());
      change_bytes(options, own, size, bytes, out);
      rest_of_operations = rest_of_operations.subspan(own.size());
    }
    cover(size, change, out);
    in += step;
    out += step;
  }
  return result;
}

}  // namespace lacuna
