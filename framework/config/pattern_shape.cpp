#include "lacuna/framework/config/pattern_shape.h"

#include <charconv>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr std::string_view kNm = "nm ", kBlock = "block ", kTransposable = " transposable";

std::string number(int64_t n) { return std::to_string(n); }

// Takes `text` off the front of `rest`.
bool skip(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// Takes a number off the front of `rest`.
bool read(std::string_view& rest, int64_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

// `key` of the pattern, which has to be one of two names.
bool is_second(const Config& pattern, const char* key, const char* first, const char* second) {
  const auto name = to_lower(pattern.get<std::string>(key, first));
  if (name != first && name != second) {
    pattern.get(key).fail("'" + std::string(first) + "' or '" + second + "'");
  }
  return name == second;
}

PatternShape nm_from_config(const Config& p) {
  const auto n = require_at_least(p, "n", p.required<int64_t>("n"), 1);
  const auto m = require_at_least(p, "m", p.required<int64_t>("m"), 2);
  if (m > PatternShape::kLargestM) p.get("m").error("m is at most 16, found " + number(m));
  if (n >= m) p.get("n").error("n must be below m = " + number(m) + ", found " + number(n));
  const auto group = require_at_least(p, "group", p.get<int64_t>("group", 1), 1);
  if (group > PatternShape::kLargestUnit) {
    p.get("group").error("group is at most " + number(PatternShape::kLargestUnit));
  }
  const bool transposable = p.get<bool>("transposable", false);
  if (!transposable) return PatternShape::nm(static_cast<int>(n), static_cast<int>(m), group);
  if (n != 2 || m != 4 || group != 1) {
    p.get("transposable")
        .error("only 2:4 without groups can be transposable, found " + number(n) + ":" + number(m) +
               (group == 1 ? "" : " in groups of " + number(group) + " rows"));
  }
  is_second(p, "search", "exact", "greedy");  // runs of 0.1.0 may have either; there is one search
  return PatternShape::transposable_2_4();
}

}  // namespace

bool PatternShape::is_valid_nm(int64_t n, int64_t m, int64_t shared_rows) {
  return n >= 1 && n <= m && m <= kLargestM && shared_rows >= 1 && shared_rows <= kLargestUnit;
}

bool PatternShape::is_valid_block(int64_t rows, int64_t columns) {
  return rows >= 1 && columns >= 1 && rows <= kLargestUnit && columns <= kLargestUnit;
}

PatternShape PatternShape::nm(int n, int m, int64_t shared_rows) {
  if (!is_valid_nm(n, m, shared_rows)) {
    throw ConfigError(
        "pattern: an N:M pattern needs 1 <= n <= m <= 16 and a group of at least one row, found " +
        number(n) + ":" + number(m) + " in groups of " + number(shared_rows));
  }
  PatternShape shape;
  shape.kind_ = Kind::Nm;
  shape.n_ = n;
  shape.m_ = m;
  shape.unit_rows_ = shared_rows;
  return shape;
}

PatternShape PatternShape::transposable_2_4() {
  PatternShape shape = nm(2, 4);
  shape.transposable_ = true;
  return shape;
}

PatternShape PatternShape::block(int64_t rows, int64_t columns, Norm norm) {
  if (!is_valid_block(rows, columns)) {
    throw ConfigError("pattern: a block has 1 to " + number(kLargestUnit) +
                      " rows and columns, found " + number(rows) + "x" + number(columns));
  }
  PatternShape shape;
  shape.kind_ = Kind::Block;
  shape.unit_rows_ = rows;
  shape.unit_columns_ = columns;
  shape.norm_ = norm;
  return shape;
}

std::optional<PatternShape> PatternShape::parse(std::string_view text) {
  PatternShape shape;
  int64_t first = 0, second = 0, shared_rows = 1;
  if (std::string_view rest = text; skip(rest, kNm)) {
    if (!read(rest, first) || !skip(rest, ":") || !read(rest, second)) return std::nullopt;
    const bool is_transposable = rest == kTransposable;
    if (skip(rest, " g") && !read(rest, shared_rows)) return std::nullopt;
    if (!is_valid_nm(first, second, shared_rows)) return std::nullopt;
    shape = is_transposable ? transposable_2_4()
                            : nm(static_cast<int>(first), static_cast<int>(second), shared_rows);
  } else if (skip(rest, kBlock)) {
    if (!read(rest, first) || !skip(rest, "x") || !read(rest, second)) return std::nullopt;
    if (!is_valid_block(first, second)) return std::nullopt;
    shape = block(first, second);
  }
  // Leading zeros, and what follows the last number, make it another text.
  if (shape.to_string() != text) return std::nullopt;
  return shape;
}

PatternShape PatternShape::from_config(const Config& pattern) {
  if (pattern.is_null()) return {};
  if (!pattern.is_map()) pattern.fail("a map such as {type: nm, n: 2, m: 4}");
  const auto type = to_lower(pattern.required<std::string>("type"));
  if (type == "nm") return nm_from_config(pattern);
  if (type != "block") {
    pattern.get("type").error("unknown pattern '" + type + "'; " +
                              suggest_name(type, std::vector<std::string>{"nm", "block"}));
  }
  return block_from_config(pattern);
}

PatternShape PatternShape::block_from_config(const Config& options) {
  const auto rows = require_at_least(options, "rows", options.required<int64_t>("rows"), 1);
  const auto columns = require_at_least(options, "cols", options.required<int64_t>("cols"), 1);
  for (const char* key : {"rows", "cols"}) {
    if (options.get(key).as<int64_t>() > kLargestUnit) {
      options.get(key).error("a block has at most " + number(kLargestUnit) + " rows and columns");
    }
  }
  return block(rows, columns, is_second(options, "norm", "l1", "l2") ? Norm::L2 : Norm::L1);
}

Shape PatternShape::units(const Shape& shape) const {
  if (shape.rank() <= 2) {
    return Shape{matrix_rows(shape) / unit_rows_, matrix_columns(shape) / unit_columns_};
  }
  std::vector<int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  sizes[0] /= unit_rows_;
  sizes[1] /= unit_columns_;
  return Shape(sizes);
}

void PatternShape::require_fit(const std::string& owner, const Shape& shape) const {
  if (!is_structured()) return;
  const auto require = [&](int64_t size, int64_t divisor, const char* dimension) {
    if (size % divisor == 0) return;
    throw ShapeError(owner + " of shape " + shape.to_string() + " cannot have the pattern " +
                     description() + ": its " + dimension + " " + number(size) +
                     " is not divisible by " + number(divisor) +
                     "; change the size, or exclude the weight with param_filter");
  };
  const Shape by = divisors();
  require(matrix_rows(shape), by[0], "output dimension");
  if (shape.rank() > 2) {  // a convolution's, of which each tap is a matrix
    require(shape[1], by[1], "number of input channels");
  } else {
    require(matrix_columns(shape), by[1], "input dimension");
  }
}

std::string PatternShape::to_string() const {
  if (kind_ == Kind::Unstructured) return "unstructured";
  if (kind_ == Kind::Block) {
    return std::string(kBlock) + number(unit_rows_) + "x" + number(unit_columns_);
  }
  return std::string(kNm) + number(n_) + ":" + number(m_) +
         std::string(transposable_ ? kTransposable : "") +
         (unit_rows_ > 1 ? " g" + number(unit_rows_) : "");
}

std::string PatternShape::description() const {
  if (kind_ == Kind::Unstructured) return "unstructured";
  if (kind_ == Kind::Block) return "blocks of " + number(unit_rows_) + "x" + number(unit_columns_);
  return number(n_) + ":" + number(m_) + (transposable_ ? " transposable" : "") +
         (unit_rows_ > 1 ? " in groups of " + number(unit_rows_) + " rows" : "");
}

}  // namespace lacuna
