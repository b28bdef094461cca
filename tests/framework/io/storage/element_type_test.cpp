// Elements of other types: names, sizes, and what becomes of their bits.
#include "lacuna/framework/io/storage/element_type.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lacuna::element_type_test {
namespace {

using testing::ElementsAre;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<float> floats(ElementType type, const std::vector<T>& values) {
  std::vector<float> into(values.size());
  decode_floats(type, bytes_of(values), into);
  return into;
}

TEST(ElementType, IsFoundByItsName) {
  for (const ElementType type : {ElementType::Bool, ElementType::I32, ElementType::U64,
                                 ElementType::BF16, ElementType::F64}) {
    EXPECT_EQ(element_type(to_string(type)), type);
    EXPECT_GT(element_bytes(type), 0u);
  }
  EXPECT_EQ(element_type("F8_E4M3"), ElementType::Other);
  EXPECT_EQ(element_bytes(ElementType::Other), 0u);
}

TEST(ElementType, HalvesAndDoublesBecomeFloats) {
  EXPECT_THAT(floats<uint16_t>(ElementType::F16, {0x3c00, 0xc000, 0x0001, 0x7bff}),
              ElementsAre(1.0f, -2.0f, std::ldexp(1.0f, -24), 65504.0f));
  EXPECT_TRUE(std::isnan(floats<uint16_t>(ElementType::F16, {0x7e00})[0]));
  EXPECT_THAT(floats<uint16_t>(ElementType::BF16, {0x3f80, 0xc000}), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(floats<double>(ElementType::F64, {0.1, -1e300}),
              ElementsAre(0.1f, -std::numeric_limits<float>::infinity()));
  std::vector<float> into(2);
  constexpr double kInfinite = std::numeric_limits<double>::infinity(), kMost = 3.4028234e38;
  EXPECT_FALSE(decode_floats(ElementType::F64, bytes_of<double>({kInfinite, kMost}), into));
  const auto problem = decode_floats(ElementType::F64, bytes_of<double>({kInfinite, 1e39}), into);
  EXPECT_THAT(problem.value_or(""), testing::HasSubstr("the value 1e+39 (its element 1"));
}

TEST(ElementType, IntegersKeepTheirSign) {
  std::vector<int64_t> into(2);
  EXPECT_FALSE(decode_integers(ElementType::I8, bytes_of<int8_t>({-1, 127}), into));
  EXPECT_THAT(into, ElementsAre(-1, 127));
  EXPECT_FALSE(decode_integers(ElementType::U8, bytes_of<uint8_t>({255, 0}), into));
  EXPECT_THAT(into, ElementsAre(255, 0));
  EXPECT_FALSE(decode_integers(ElementType::I32, bytes_of<int32_t>({-7, 1 << 30}), into));
  EXPECT_THAT(into, ElementsAre(-7, 1 << 30));
  EXPECT_EQ(decode_integers(ElementType::U64, bytes_of<uint64_t>({1, ~uint64_t{0}}), into), 1u);
}

TEST(ElementType, MasksAreZerosAndOnes) {
  std::vector<uint8_t> into(3);
  EXPECT_FALSE(decode_mask(ElementType::F32, bytes_of<float>({1, 0, -0.0f}), into));
  EXPECT_THAT(into, ElementsAre(1, 0, 0));
  EXPECT_EQ(decode_mask(ElementType::I64, bytes_of<int64_t>({1, 0, -1}), into), 2u);
  EXPECT_EQ(decode_mask(ElementType::F32, bytes_of<float>({1, 0.5f, 0}), into), 1u);
}

TEST(ElementType, BytesAreTurnedRoundElementByElement) {
  std::vector<uint8_t> bytes{1, 2, 3, 4, 5, 6};
  reverse_elements(std::as_writable_bytes(std::span(bytes)), 2);
  EXPECT_THAT(bytes, ElementsAre(2, 1, 4, 3, 6, 5));
}

}  // namespace
}  // namespace lacuna::element_type_test
