// The table of where the time of several contenders goes.
#pragma once

#include <map>
#include <string>

#include "common/report.h"
#include "lacuna/framework/config/config.h"

namespace lacuna::bench {

using MsByKind = std::map<std::string, double>;

/// Milliseconds of each kind of work, and the share of its bound that was reached: two columns for
/// each contender.
class KindTable {
 public:
  explicit KindTable(const std::string& title) : table_{.title = title, .columns = {"kind"}} {}

  /// Where a bound is not known, or the kind takes next to no time, there is no share.
  void add(const std::string& contender, const MsByKind& ms, const MsByKind& bounds);
  const Table& table() const { return table_; }

 private:
  Table table_;
};

Config to_json(const MsByKind& ms_by_kind);

}  // namespace lacuna::bench
