#include "lacuna/framework/layouts/mask_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/bit_words.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

constexpr int64_t kMostBits = int64_t{1} << 32;

[[noreturn]] void refuse(const std::string& what, const Shape& shape) {
  throw ShapeError("a mask of " + what + " does not fit the shape " + shape.to_string());
}

DeadLines dead_lines_of(const Positions& positions, int64_t taps) {
  const int64_t channels = positions.columns() / taps;
  std::vector<char> alive(static_cast<size_t>(channels));
  DeadLines dead{.columns = channels};
  // Usually a few rows already use all columns.
  for (int64_t r = 0; r < positions.rows() && dead.columns > 0; ++r) {
    for (const uint32_t column : positions.row(r)) {
      char& channel = alive[taps == 1 ? column : static_cast<size_t>(column / taps)];
      dead.columns -= channel == 0 ? 1 : 0;
      channel = 1;
    }
  }
  for (int64_t r = 0; r < positions.rows(); ++r) dead.rows += positions.row(r).empty() ? 1 : 0;
  return dead;
}

// Counts groups of `taps` bits of which none is set.
int64_t count_empty(std::span<const uint64_t> words, int64_t groups, int64_t taps) {
  int64_t empty = 0;
  for (int64_t group = 0; group < groups; ++group) {
    bool any = false;
    for (int64_t bit = group * taps; bit < (group + 1) * taps; ++bit) {
      any |= (words[static_cast<size_t>(bit / 64)] >> (bit % 64) & 1) != 0;
    }
    empty += any ? 0 : 1;
  }
  return empty;
}

DeadLines dead_lines_of(std::span<const uint64_t> words, int64_t rows, int64_t columns,
                        int64_t taps) {
  DeadLines dead{.columns = columns};
  std::vector<uint64_t> alive(static_cast<size_t>((columns + 63) / 64));
  for (int64_t row = 0; row < rows; ++row) {
    uint64_t any = 0;
    for (int64_t at = 0; at < columns; at += 64) {
      uint64_t bits = bits_from(words, row * columns + at);
      if (columns - at < 64) bits &= (uint64_t{1} << (columns - at)) - 1;
      alive[static_cast<size_t>(at / 64)] |= bits;
      any |= bits;
    }
    dead.rows += any == 0 ? 1 : 0;
  }
  if (taps > 1) {
    dead.columns = count_empty(alive, columns / taps, taps);
  } else {
    for (const uint64_t word : alive) dead.columns -= count_ones(word);
  }
  return dead;
}

}  // namespace

MaskSet::MaskSet(const Shape& shape, BitMask bits)
    : shape_(shape), count_(bits.count()), bits_(std::make_shared<const BitMask>(std::move(bits))) {
  if (bits_->size() != shape.numel()) {
    refuse(fmt::format("{} positions", bits_->size()), shape);
  }
}

MaskSet::MaskSet(BitMask bits)
    : shape_{bits.size()},
      count_(bits.count()),
      bits_(std::make_shared<const BitMask>(std::move(bits))) {}

MaskSet::MaskSet(const Shape& shape, Positions positions)
    : shape_(shape),
      count_(positions.count()),
      positions_(std::make_shared<const Positions>(std::move(positions))) {
  if (positions_->rows() != matrix_rows(shape) || positions_->columns() != matrix_columns(shape)) {
    refuse(fmt::format("{} rows and {} columns", positions_->rows(), positions_->columns()), shape);
  }
}

MaskSet::MaskSet(std::shared_ptr<const Pattern> pattern)
    : shape_(pattern->shape()), count_(pattern->nnz()), pattern_(std::move(pattern)) {}

MaskSet MaskSet::all(const Shape& shape) { return MaskSet(shape, Positions::all(shape)); }

MaskSet MaskSet::known_to_have(const PatternShape& pattern) const {
  MaskSet known = *this;
  known.known_ = pattern;
  return known;
}

MaskSet MaskSet::of_shape(const Shape& shape) const {
  return shape == shape_ ? *this : MaskSet(shape, bits());
}

const BitMask& MaskSet::bits() const {
  if (bits_ == nullptr) {
    if (size() > kMostBits) {
      throw StateError(
          fmt::format("a mask of shape {} has {} positions; masks above 2^32 are not stored as "
                      "bits: use positions()",
                      shape_.to_string(), size()));
    }
    const bool has_mask = pattern_ != nullptr && !pattern_->is_dense() && !has_positions();
    bits_ = std::make_shared<const BitMask>(has_mask ? pattern_->mask() : positions().to_mask());
  }
  return *bits_;
}

const Positions& MaskSet::positions() const {
  if (positions_ == nullptr) {
    positions_ = std::make_shared<const Positions>(
        pattern_ != nullptr ? pattern_->positions() : Positions::of(shape_, *bits_));
  }
  return *positions_;
}

bool operator==(const MaskSet& a, const MaskSet& b) {
  if (!(a.shape_ == b.shape_) || a.count_ != b.count_) return false;
  return a.has_bits() && b.has_bits() ? a.bits() == b.bits() : a.positions() == b.positions();
}

int64_t count_common(const MaskSet& a, const MaskSet& b) {
  const auto has_bits_alone = [](const MaskSet& set) {
    return set.has_bits() && !set.has_positions();
  };
  if (has_bits_alone(a) || has_bits_alone(b)) return count_common(a.bits(), b.bits());
  return count_common(a.positions(), b.positions());
}

DeadLines dead_lines(const MaskSet& mask) {
  const int64_t taps = matrix_taps(mask.shape());
  if (mask.has_positions() || !mask.has_bits()) return dead_lines_of(mask.positions(), taps);
  return dead_lines_of(mask.bits().words(), matrix_rows(mask.shape()), matrix_columns(mask.shape()),
                       taps);
}

}  // namespace lacuna
