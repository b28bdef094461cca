// Tables in the page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

/// What is known of a row that is about a run, in addition to its cells.
struct RowMark {
  int run = -1;             ///< its place among the runs; -1: about none
  std::string title = {};   ///< shown where a pointer rests on its first cell
  std::string swatch = {};  ///< HTML before its name
};

/// The first row of `results` and `groups` is the best one. `marks`: one for each row, or none.
std::string html_table(const TextTable& table, const std::string& id,
                       const std::vector<RowMark>& marks = {});

}  // namespace lacuna
