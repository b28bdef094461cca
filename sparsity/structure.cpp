#include "lacuna/sparsity/structure.h"

#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/layouts/grouped.h"
#include "lacuna/framework/layouts/nm.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {
namespace {

constexpr int kLargestM = 16;
constexpr int64_t kLargestUnit = int64_t{1} << 20;

std::string number(int64_t n) { return std::to_string(n); }

// `key` of the pattern, which has to be one of two names.
bool is_second(const Config& pattern, const char* key, const char* first, const char* second) {
  const auto name = to_lower(pattern.get<std::string>(key, first));
  if (name != first && name != second) {
    pattern.get(key).fail("'" + std::string(first) + "' or '" + second + "'");
  }
  return name == second;
}

Structure nm_from_config(const Config& p) {
  const auto n = require_at_least(p, "n", p.required<int64_t>("n"), 1);
  const auto m = require_at_least(p, "m", p.required<int64_t>("m"), 2);
  if (m > kLargestM) p.get("m").error("m is at most 16, found " + number(m));
  if (n >= m) p.get("n").error("n must be below m = " + number(m) + ", found " + number(n));
  const auto group = require_at_least(p, "group", p.get<int64_t>("group", 1), 1);
  if (group > kLargestUnit) p.get("group").error("group is at most " + number(kLargestUnit));
  const bool transposable = p.get<bool>("transposable", false);
  if (!transposable)
    return Structure::nm(static_cast<int>(n), static_cast<int>(m), static_cast<int>(group));
  if (n != 2 || m != 4 || group != 1) {
    p.get("transposable")
        .error("only 2:4 without groups can be transposable, found " + number(n) + ":" + number(m) +
               (group == 1 ? "" : " in groups of " + number(group) + " rows"));
  }
  return Structure::transposable_2_4(is_second(p, "search", "exact", "greedy")
                                         ? Structure::Search::Greedy
                                         : Structure::Search::Exact);
}

}  // namespace

Structure Structure::nm(int n, int m, int group) {
  if (n < 1 || m > kLargestM || n >= m || group < 1) {
    throw ConfigError(
        "pattern: an N:M pattern needs 1 <= n < m <= 16 and a group of at least one "
        "row, found " +
        number(n) + ":" + number(m) + " in groups of " + number(group));
  }
  Structure s;
  s.kind = Kind::Nm;
  s.n = n;
  s.m = m;
  s.group = group;
  return s;
}

Structure Structure::transposable_2_4(Search search) {
  Structure s = nm(2, 4);
  s.transposable = true;
  s.search = search;
  return s;
}

Structure Structure::block(int64_t rows, int64_t columns, Norm norm) {
  if (rows < 1 || columns < 1 || rows > kLargestUnit || columns > kLargestUnit) {
    throw ConfigError("pattern: a block has 1 to " + number(kLargestUnit) +
                      " rows and columns, found " + number(rows) + "x" + number(columns));
  }
  Structure s;
  s.kind = Kind::Block;
  s.rows = rows;
  s.columns = columns;
  s.norm = norm;
  return s;
}

Structure Structure::from_config(const Config& pattern) {
  if (pattern.is_null()) return none();
  if (!pattern.is_map()) pattern.fail("a map such as {type: nm, n: 2, m: 4}");
  const auto type = to_lower(pattern.required<std::string>("type"));
  if (type == "nm") return nm_from_config(pattern);
  if (type != "block") {
    pattern.get("type").error("unknown pattern '" + type + "'; " +
                              suggest_name(type, std::vector<std::string>{"nm", "block"}));
  }
  return block_from_config(pattern);
}

Structure Structure::block_from_config(const Config& pattern) {
  const auto rows = require_at_least(pattern, "rows", pattern.required<int64_t>("rows"), 1);
  const auto columns = require_at_least(pattern, "cols", pattern.required<int64_t>("cols"), 1);
  for (const char* key : {"rows", "cols"}) {
    if (pattern.get(key).as<int64_t>() > kLargestUnit) {
      pattern.get(key).error("a block has at most " + number(kLargestUnit) + " rows and columns");
    }
  }
  return block(rows, columns, is_second(pattern, "norm", "l1", "l2") ? Norm::L2 : Norm::L1);
}

Shape Structure::units(const Shape& shape) const {
  return Shape{matrix_rows(shape) / unit_rows(), matrix_columns(shape) / unit_columns()};
}

void Structure::require_fit(const std::string& whose, const Shape& shape) const {
  if (!exists()) return;
  const int64_t by_rows = is_nm() ? cell_rows() * unit_rows() : rows;
  const int64_t by_columns = is_nm() ? cell_columns() : columns;
  const auto require = [&](int64_t size, int64_t by, const char* dimension) {
    if (size % by == 0) return;
    throw ShapeError(whose + " of shape " + shape.to_string() + " cannot have the pattern " +
                     description() + ": its " + dimension + " " + number(size) +
                     " is not divisible by " + number(by));
  };
  require(matrix_rows(shape), by_rows, "output dimension");
  require(matrix_columns(shape), by_columns, "input dimension");
}

const Layout& Structure::layout() const {
  if (kind == Kind::Block) {
    return block_layout({static_cast<int>(rows), static_cast<int>(columns)});
  }
  if (group > 1) return grouped_nm_layout({n, m, group});
  return nm_layout({n, m, transposable});
}

std::string Structure::description() const {
  if (kind == Kind::Block) return "blocks of " + number(rows) + "x" + number(columns);
  if (kind == Kind::None) return "unstructured";
  return number(n) + ":" + number(m) + (transposable ? " transposable" : "") +
         (group > 1 ? " in groups of " + number(group) + " rows" : "");
}

}  // namespace lacuna
