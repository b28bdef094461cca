// The storage orders of images: where pixels lie, and tensors that are stored so.
#include "lacuna/framework/core/image_slabs.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/tensor.h"
#include "throws.h"

namespace lacuna::image_slabs_test {
namespace {

constexpr Order kOrders[] = {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs,
                             Order::ChannelBlocks};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int64_t batch : {0, 1, 15, 16, 17, 33}) {
    for (const int64_t channels : {1, 3, 16, 17}) {
      for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {6, 1}, {5, 3}, {4, 6}}) {
        all.push_back({batch, channels, height, width});
      }
    }
  }
  all.push_back({2, 0, 3, 3});
  all.push_back({17, 3, 0, 3});
  all.push_back({17, 3, 3, 0});
  return all;
}

// 1, 2, …: sums of them are exact in double, and no element is zero.
Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from(shape, values);
}

double sum_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(ImageSlabs, PixelsLieAtTheirPlacesInLines) {
  const Shape shape{19, 3, 4, 5};
  const Tensor images = counting(shape), slabs = images.to(Order::ImageSlabs);
  const ImageSlabs at(shape);
  EXPECT_EQ(at.slabs(), 2);
  EXPECT_EQ(at.row_lines(), 6);
  EXPECT_EQ(at.plane_lines(), 31);  // 5 rows of 6 lines, and one more
  EXPECT_EQ(at.lead_lines(), 7);
  EXPECT_EQ(at.slab_lines(), 7 + 3 * 31 + 7);
  EXPECT_EQ(at.size(), slabs.storage_size());
  EXPECT_EQ(at.line(1, 2, 3, 4), (107 + 7 + 2 * 31 + 3 * 6 + 4) * 16);
  const float* stored = slabs.data(Order::ImageSlabs);
  int64_t flat = 0;
  for (int64_t example = 0; example < 19; ++example) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t column = 0; column < 5; ++column, ++flat) {
          ASSERT_EQ(stored[at.pixel(example, channel, row, column)], images.data()[flat]);
          ASSERT_EQ(at.pixel(example, channel, row, column),
                    at.line(example / 16, channel, row, column) + example % 16);
        }
      }
    }
  }
}

TEST(ImageSlabs, PlanesHaveAnOddNumberOfLines) {
  for (int64_t height = 1; height < 9; ++height) {
    for (int64_t width = 1; width < 9; ++width) {
      EXPECT_EQ(ImageSlabs(Shape{1, 1, height, width}).plane_lines() % 2, 1);
    }
  }
}

// What convolutions rely on: a neighbour of a pixel is at a fixed distance, and zero where the
// image ends, on every side.
TEST(ImageSlabs, NeighboursOutsideOfTheImageAreZeros) {
  for (const Shape& shape : shapes()) {
    if (shape.numel() == 0) continue;
    SCOPED_TRACE(shape.to_string());
    const ImageSlabs at(shape);
    const Tensor slabs = Tensor::full(shape, 1.0f).to(Order::ImageSlabs);
    const float* stored = slabs.data(Order::ImageSlabs);
    const auto is_pixel = [&](int64_t row, int64_t column) {
      return row >= 0 && row < shape[2] && column >= 0 && column < shape[3];
    };
    int64_t wrong = 0;
    for (int64_t channel = 0; channel < shape[1]; ++channel) {
      for (int64_t pixel = 0; pixel < shape[2] * shape[3]; ++pixel) {
        const int64_t row = pixel / shape[3], column = pixel % shape[3];
        for (int64_t near = 0; near < 9; ++near) {
          const int64_t dr = near / 3 - 1, dc = near % 3 - 1;
          const int64_t line =
              at.line(0, channel, row, column) / kImageSlabWidth + dr * at.row_lines() + dc;
          ASSERT_GE(line, 0);
          ASSERT_LT(line, at.slab_lines());
          wrong +=
              stored[line * kImageSlabWidth] != (is_pixel(row + dr, column + dc) ? 1.0f : 0.0f);
        }
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ChannelBlocks, HoldSixteenChannelsOfAPixelSideBySide) {
  const Shape shape{3, 18, 2, 5};
  const Tensor images = counting(shape), stored = images.to(Order::ChannelBlocks);
  const ChannelBlocks at(shape);
  EXPECT_EQ(at.blocks(), 2);
  EXPECT_EQ(at.size(), 3 * 2 * 10 * 16);
  EXPECT_EQ(stored.storage_size(), at.size());
  EXPECT_EQ(at.block(2, 1, 7), ((2 * 2 + 1) * 10 + 7) * 16);
  EXPECT_EQ(at.element(2, 17, 7), at.block(2, 1, 7) + 1);
  for (int64_t flat = 0; flat < images.numel(); ++flat) {
    ASSERT_EQ(
        stored.storage()[static_cast<size_t>(at.element(flat / 180, flat / 10 % 18, flat % 10))],
        images.data()[flat]);
  }
}

TEST(ImageOrders, RoundTripsKeepElementsAndPadWithZeros) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.to_string());
    const Tensor images = counting(shape);
    const double total = sum_of(images.storage());
    for (const Order from : kOrders) {
      const Tensor stored = images.to(from);
      ASSERT_EQ(stored.order(), from);
      ASSERT_EQ(stored.shape(), shape);
      ASSERT_EQ(stored.bytes(), 4 * stored.storage_size());
      for (const Order order : kOrders) {
        const Tensor converted = stored.to(order);
        ASSERT_EQ(converted.to_vector(), images.to_vector());
        ASSERT_EQ(sum_of(converted.storage()), total) << to_string(from) << to_string(order);
      }
    }
  }
}

TEST(ImageOrders, ClearPaddingLeavesTheElementsAlone) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.to_string());
    for (const Order order : kOrders) {
      Tensor stored = Tensor::empty(shape, order);
      std::ranges::fill(stored.mutable_storage(), 1.0f);
      stored.clear_padding();
      EXPECT_EQ(sum_of(stored.storage()), static_cast<double>(shape.numel())) << to_string(order);
      EXPECT_EQ(stored.to_vector(), Tensor::full(shape, 1.0f).to_vector());
    }
  }
}

TEST(ImageOrders, LinesBetweenRowsAreLeftToWhoAsksForThem) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.to_string());
    Tensor all = Tensor::empty(shape, Order::ImageSlabs), others = all.clone();
    std::ranges::fill(all.mutable_storage(), 1.0f);
    std::ranges::fill(others.mutable_storage(), 1.0f);
    all.clear_padding();
    others.clear_padding(Tensor::Padding::ZeroButBetweenRows);
    const ImageSlabs at(image_shape(shape));
    for (int64_t example = 0; example < at.batch; ++example) {
      for (int64_t channel = 0; channel < at.channels; ++channel) {
        for (int64_t row = 0; row + 1 < at.height; ++row) {
          const auto behind = static_cast<size_t>(at.pixel(example, channel, row, at.width));
          ASSERT_EQ(all.storage()[behind], 0.0f);
          ASSERT_EQ(others.storage()[behind], 1.0f);
          others.mutable_storage()[behind] = 0.0f;
        }
      }
    }
    ASSERT_TRUE(std::ranges::equal(all.storage(), others.storage()));
  }
}

TEST(ImageOrders, PaddingOfAnEmptyTensorIsZeroInUsedMemoryToo) {
  const Shape shape{17, 18, 5, 4};
  for (const Order order : kOrders) {
    {
      Tensor before = Tensor::empty(shape, order);
      std::ranges::fill(before.mutable_storage(), std::numeric_limits<float>::quiet_NaN());
    }
    const Tensor stored = Tensor::empty(shape, order);
    Tensor elements = Tensor::full(shape, 1.0f).to(order);
    for (size_t i = 0; i < stored.storage().size(); ++i) {
      if (elements.storage()[i] == 0.0f) {
        ASSERT_EQ(stored.storage()[i], 0.0f);
      }
    }
    EXPECT_EQ(sum_of(Tensor::zeros(shape, order).storage()), 0.0);
  }
}

TEST(ImageOrders, CopiesKeepTheirOrder) {
  const Tensor images = counting({2, 3, 4, 5});
  for (const Order order : {Order::ImageSlabs, Order::ChannelBlocks}) {
    const Tensor stored = images.to(order);
    EXPECT_TRUE(stored.to(order).shares_storage_with(stored));
    const Tensor copy = stored.clone();
    EXPECT_FALSE(copy.shares_storage_with(stored));
    EXPECT_EQ(copy.order(), order);
    EXPECT_TRUE(std::ranges::equal(copy.storage(), stored.storage()));
    const Tensor flat = stored.reshape({6, 20});
    EXPECT_EQ(flat.order(), Order::RowMajor);
    EXPECT_EQ(flat.to_vector(), images.to_vector());
    EXPECT_EQ(Tensor::full({1, 1, 1, 1}, 3.0f).to(order).to_vector().front(), 3.0f);
  }
}

TEST(ImageOrders, OnlyImagesHaveThem) {
  EXPECT_TRUE(is_of_images(Order::ImageSlabs));
  EXPECT_TRUE(is_of_images(Order::ChannelBlocks));
  EXPECT_FALSE(is_of_images(Order::RowMajor));
  EXPECT_FALSE(is_of_images(Order::BatchSlabs));
  for (const Order order : {Order::ImageSlabs, Order::ChannelBlocks}) {
    for (const Shape& shape : {Shape{}, Shape{6}, Shape{2, 3}, Shape{1, 1, 2, 3, 1}}) {
      const std::string words =
          "images are [batch, channels, height, width] or [batch, channels, length], found the "
          "shape " +
          shape.to_string();
      expect_throws<ShapeError>([&] { Tensor::empty(shape, order); }, words);
      expect_throws<ShapeError>([&] { Tensor::zeros(shape, order); }, words);
      expect_throws<ShapeError>([&] { Tensor::zeros(shape).to(order); }, words);
    }
  }
}

// [batch, channels, length] lies as images of height 1 do.
TEST(ImageOrders, SequencesAreImagesOfHeightOne) {
  const Tensor sequences = counting({17, 18, 5}), images = sequences.reshape({17, 18, 1, 5});
  for (const Order order : {Order::ImageSlabs, Order::ChannelBlocks}) {
    const Tensor stored = sequences.to(order), expected = images.to(order);
    EXPECT_EQ(stored.shape(), sequences.shape());
    EXPECT_TRUE(std::ranges::equal(stored.storage(), expected.storage()));
    EXPECT_EQ(stored.to_vector(), sequences.to_vector());
    const Tensor view = stored.viewed_as(images.shape());
    EXPECT_TRUE(view.shares_storage_with(stored));
    EXPECT_EQ(view.order(), order);
    EXPECT_EQ(view.to_vector(), images.to_vector());
    EXPECT_EQ(view.viewed_as(sequences.shape()).shape(), sequences.shape());
    expect_throws<ShapeError>(
        [&] {
          stored.viewed_as({17, 18, 5, 1});
        },
        std::string("a tensor of shape [17, 18, 5] in ") + to_string(order) +
            " cannot be viewed as shape [17, 18, 5, 1]");
    expect_throws<ShapeError>([&] { stored.viewed_as({17, 90}); }, "images are");
  }
  EXPECT_EQ(sequences.viewed_as({17, 90}).to_vector(), sequences.to_vector());
  EXPECT_TRUE(sequences.viewed_as({17, 90}).shares_storage_with(sequences));
  expect_throws<ShapeError>([&] { sequences.viewed_as({17, 91}); }, "cannot be viewed as shape");
  const Tensor slabs = counting({3, 4}).to(Order::BatchSlabs);
  EXPECT_EQ(slabs.viewed_as({3, 4}).order(), Order::BatchSlabs);
  expect_throws<ShapeError>([&] { slabs.viewed_as({4, 3}); }, "in batch slabs cannot be viewed as");
}

TEST(ImageOrders, DataInAnotherOrderIsRefused) {
  const Tensor slabs = Tensor::zeros({1, 2, 3, 3}, Order::ImageSlabs);
  expect_throws<StateError>([&] { slabs.data(); },
                            "a tensor of shape [1, 2, 3, 3] is stored in image slabs, but its data "
                            "was requested in row-major");
  expect_throws<StateError>([&] { slabs.data(Order::ChannelBlocks); },
                            "requested in channel blocks");
}

}  // namespace
}  // namespace lacuna::image_slabs_test
